"""The requests that one change makes: for which brokers, in which order, and what they carry."""

from __future__ import annotations

from ixion.broker.controller.cluster.batch import IN_REQUEST, MORE_FOLLOW, Batch, ControlRequest, Sender
from ixion.broker.controller.cluster.channels import VERSIONS
from ixion.broker.controller.cluster.cluster import Cluster, Member, Topic
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.metadata.broker_node import Registration
from ixion.broker.metadata.topic_node import Replicas
from ixion.config.listeners import Endpoint
from ixion.language.protocol.codec.sink import Buffer
from ixion.language.protocol.envelope import decode_request, encode_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrLiveLeader, LeaderAndIsrRequest
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest
from ixion.language.wire import ClientConnection
from ixion.timer.turns import Steps

SENDER = Sender(controller_id=1, controller_epoch=7, listener="INSIDE")
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


def cluster() -> Cluster:
    made = Cluster()
    for number in (1, 2, 3):
        endpoints = (
            Endpoint("OUTSIDE", "public", 1000 + number, "SASL_SSL"),
            Endpoint("INSIDE", "private", 2000 + number, "PLAINTEXT"),
        )
        registration = Registration(endpoints=endpoints, timestamp_ms=0, rack=f"r{number}")
        made.brokers[number] = Member(broker_id=number, epoch=100 + number, registration=registration)
    moving = Replicas(all=(2, 3, 9), adding=(2,), removing=(9,))
    made.put_topic(Topic(name="t", topic_id=b"t" * 16, partitions={0: moving, 1: Replicas(all=(3,))}))
    made.put_topic(Topic(name="u", topic_id=b"u" * 16, partitions={0: Replicas(all=(3,))}))
    made.leaderships[T0] = Leadership(
        leader=3, leader_epoch=5, isr=(3, 9), partition_epoch=8, controller_epoch=6, recovering=True
    )
    made.leaderships[T1] = Leadership(leader=3, leader_epoch=0, isr=(3,), controller_epoch=7)
    return made


def finished(steps: Steps[dict[int, list[ControlRequest]]]) -> dict[int, list[ControlRequest]]:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: dict[int, list[ControlRequest]] = done.value
            return made


def test_leader_and_isr_carries_all_that_a_replica_must_know() -> None:
    batch = Batch(cluster())
    batch.lead([2, 3, 9], T0)
    batch.lead([2], T0, is_new=True)
    batch.lead([2], T0)
    made = finished(batch.requests(SENDER))
    assert sorted(made) == [1, 2, 3], "9 is not registered; 1 has no replica, but metadata"
    assert [type(request) for request in made[2]] == [LeaderAndIsrRequest, UpdateMetadataRequest]
    assert [type(request) for request in made[1]] == [UpdateMetadataRequest]
    request = made[2][0]
    assert isinstance(request, LeaderAndIsrRequest)
    assert (request.controller_id, request.controller_epoch, request.broker_epoch, request.type) == (1, 7, 102, 0)
    assert request.live_leaders == (LeaderAndIsrLiveLeader(broker_id=3, host_name="private", port=2003),)
    (topic,) = request.topic_states
    (state,) = topic.partition_states
    assert (topic.topic_name, topic.topic_id) == ("t", b"t" * 16)
    assert (state.leader, state.leader_epoch, state.isr, state.partition_epoch) == (3, 5, (3, 9), 8)
    assert (state.controller_epoch, state.leader_recovery_state) == (6, 1), "of the controller that wrote the state"
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((2, 3, 9), (2,), (9,))
    assert state.is_new, "once new, new for the whole request"
    other = made[3][0]
    assert isinstance(other, LeaderAndIsrRequest)
    assert (other.broker_epoch, other.topic_states[0].partition_states[0].is_new) == (103, False)


def test_metadata_has_all_brokers_each_time_and_only_the_partitions_that_changed() -> None:
    made_of = cluster()
    made_of.stopping.add(3)
    batch = Batch(made_of)
    batch.show([1, 2], [T0])
    batch.show([1], [U0])  # it has no leader yet
    batch.show([3], [])
    made = finished(batch.requests(SENDER))
    for number, keys in ((1, [T0]), (2, [T0]), (3, [])):
        (request,) = made[number]
        assert isinstance(request, UpdateMetadataRequest)
        assert request.broker_epoch == 100 + number
        assert [broker.id for broker in request.live_brokers] == [1, 2, 3]
        first = request.live_brokers[0]
        assert [(each.listener, each.port, each.security_protocol) for each in first.endpoints] == [
            ("OUTSIDE", 1001, 3),
            ("INSIDE", 2001, 0),
        ]
        assert first.rack == "r1"
        states = [(topic.topic_name, each) for topic in request.topic_states for each in topic.partition_states]
        assert [(name, each.partition_index) for name, each in states] == keys
        for _, each in states:
            assert (each.leader, each.zk_version, each.offline_replicas) == (3, 8, (3, 9))


def test_a_doomed_topic_is_taken_out_of_the_metadata_and_stopped_at_any_epoch() -> None:
    made_of = cluster()
    made_of.doomed.update("tu")
    batch = Batch(made_of)
    batch.show([3], [T0, U0])
    batch.stop([3], T0, delete=True)
    batch.stop([3], T0, delete=False)
    metadata, stop = finished(batch.requests(SENDER))[3]
    assert isinstance(metadata, UpdateMetadataRequest)
    assert [each.leader for topic in metadata.topic_states for each in topic.partition_states] == [-2, -2]
    assert isinstance(stop, StopReplicaRequest)
    (state,) = stop.topic_states[0].partition_states
    assert (stop.broker_epoch, state.leader_epoch, state.delete_partition) == (103, -2, True)


def test_a_replica_is_stopped_with_the_epoch_of_its_partition() -> None:
    batch = Batch(cluster())
    batch.stop([3], T0, delete=False)
    batch.stop([3], U0, delete=False)
    (stop,) = finished(batch.requests(SENDER))[3]
    assert isinstance(stop, StopReplicaRequest)
    epochs = [each.leader_epoch for topic in stop.topic_states for each in topic.partition_states]
    assert epochs == [5, -1]


def test_nothing_is_made_of_nothing() -> None:
    batch = Batch(cluster())
    assert batch.is_empty
    assert finished(batch.requests(SENDER)) == {}


def test_every_request_can_be_written_in_its_version() -> None:
    batch = Batch(cluster())
    batch.lead([3], T0)
    batch.stop([3], T1, delete=True)
    wire = ClientConnection("1")
    for request in finished(batch.requests(SENDER))[3]:
        api, version = VERSIONS[type(request)]
        _, parts = wire.request(api, version, request)
        assert sum(map(len, parts)) > 40


def test_very_many_partitions_go_in_several_requests_that_a_broker_can_read() -> None:
    made = cluster()
    replicas = {number: Replicas(all=(1, 2, 3)) for number in range(IN_REQUEST * 2 + 1)}
    made.put_topic(Topic(name="wide", topic_id=b"w" * 16, partitions=replicas))
    for number in replicas:
        made.leaderships["wide", number] = Leadership(leader=1, leader_epoch=0, isr=(1, 2, 3), controller_epoch=7)
    batch = Batch(made)
    batch.show([1], made.keys_of("wide"))
    for key in made.keys_of("wide"):
        batch.lead([2], key)
    found = finished(batch.requests(SENDER))
    kinds: tuple[type[UpdateMetadataRequest] | type[LeaderAndIsrRequest], ...] = (
        UpdateMetadataRequest,
        LeaderAndIsrRequest,
    )
    for broker, kind in enumerate(kinds, 1):
        sent = [request for request in found[broker] if isinstance(request, kind)]
        assert [count(request) for request in sent] == [IN_REQUEST, IN_REQUEST, 1]
        api, version = VERSIONS[kind]
        header = RequestHeader(api_key=api, api_version=version, correlation_id=1, client_id="1")
        for request in sent:
            data = b"".join(bytes(part) for part in encode_request(header, request))
            assert decode_request(data)[1] == request
    updates = [request for request in found[1] if isinstance(request, UpdateMetadataRequest)]
    assert [request.type for request in updates] == [MORE_FOLLOW, MORE_FOLLOW, 0], "the last one completes the image"


def count(request: ControlRequest) -> int:
    return sum(len(topic.partition_states) for topic in request.topic_states)


def test_what_all_brokers_are_shown_is_encoded_once() -> None:
    """At 100 brokers and 200,000 partitions, encoding it for each took most of a take-over."""
    made = cluster()
    partitions = {number: Replicas(all=(3,)) for number in range(200)}
    made.put_topic(Topic(name="v", topic_id=b"v" * 16, partitions=partitions))
    keys = [("v", number) for number in partitions]
    made.leaderships.update(dict.fromkeys(keys, Leadership(leader=3, leader_epoch=0, isr=(3,))))
    batch = Batch(made)
    batch.show(made.brokers, keys)
    batch.show([3], [T0])
    requests = finished(batch.requests(SENDER))
    encoded = {broker: frame_parts(request) for broker, (request,) in requests.items()}
    largest = {broker: max(parts, key=len) for broker, parts in encoded.items()}
    assert len(largest[1]) > 1_000
    assert largest[2] is largest[1]
    assert largest[3] is not largest[1]
    for broker, parts in encoded.items():
        _, decoded = decode_request(b"".join(parts))
        assert decoded == requests[broker][0]
        assert isinstance(decoded, UpdateMetadataRequest)
        assert decoded.broker_epoch == 100 + broker
        assert [topic.topic_name for topic in decoded.topic_states] == (["t", "v"] if broker == 3 else ["v"])


def frame_parts(request: ControlRequest) -> list[Buffer]:
    api, version = VERSIONS[type(request)]
    header = RequestHeader(api_key=api, api_version=version, correlation_id=1, client_id="1")
    return encode_request(header, request)
