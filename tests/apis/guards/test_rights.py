"""Codes for each resource, where a client has a right to some and not to others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.acl_names import CLUSTER_NAME, Operation, PatternKind, Permission, ResourceKind
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.language.protocol.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.language.protocol.messages.k20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.language.protocol.messages.k27_write_txn_markers import WriteTxnMarkersResponse
from ixion.language.protocol.messages.k31_delete_acls import DeleteAclsRequest, DeleteAclsResponse
from ixion.language.protocol.messages.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ixion.language.protocol.messages.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ixion.language.protocol.messages.k78_share_fetch import FetchTopic as ShareFetchTopic
from ixion.language.protocol.messages.k78_share_fetch import ShareFetchRequest, ShareFetchResponse
from ixion.language.protocol.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatResponse
from ixion.language.protocol.messages.k89_streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis import streams_group_kit
from tests.apis.asking import Asking
from tests.apis.guards.requests_of import Names, batch, requests
from tests.apis.guards.secured import AskingAs, allow, rule, secured
from tests.apis.guards.test_acl_apis import removal

TOPIC, GROUP, CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
TRANSACTIONAL_ID = ResourceKind.TRANSACTIONAL_ID
READ, WRITE, CREATE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured() as running, AskingAs(running.bootstrap, "root") as root:
        topics = tuple(
            CreatableTopic(name=name, num_partitions=2, replication_factor=1, assignments=(), configs=())
            for name in ("a1", "a2", "b1", "b2")
        )
        assert {
            each.error_code for each in root.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse).topics
        } == {0}
        yield running


@pytest.fixture
def root(broker: Broker) -> Iterator[AskingAs]:
    """Whose rules are gone after the test."""
    with AskingAs(broker.bootstrap, "root") as asking:
        yield asking
        asking.ask(DeleteAclsRequest(filters=(removal(),)), DeleteAclsResponse)


@pytest.fixture
def alice(broker: Broker) -> Iterator[AskingAs]:
    with AskingAs(broker.bootstrap, "alice") as asking:
        yield asking


def production(
    *names: str, acks: int = -1, transactional_id: str | None = None, producer_id: int = -1
) -> ProduceRequest:
    records = batch(producer_id, transactional_id is not None or producer_id >= 0)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5_000,
        topic_data=tuple(
            TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=records),))
            for name in names
        ),
    )


def produced(alice: Asking, request: ProduceRequest) -> dict[str, ErrorCode]:
    answer = alice.ask(request, ProduceResponse, 11)
    return {topic.name: ErrorCode(topic.partition_responses[0].error_code) for topic in answer.responses}


def test_a_produce_is_answered_topic_by_topic(root: AskingAs, alice: AskingAs) -> None:
    allow(root, rule("alice", WRITE, TOPIC, "a", PatternKind.PREFIXED), rule("alice", WRITE, TOPIC, "missing"))
    assert produced(alice, production("a1", "b1", "a2", "missing", "gone")) == {
        "a1": ErrorCode.NONE,
        "b1": NO_TOPIC,
        "a2": ErrorCode.NONE,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "gone": NO_TOPIC,
    }


def test_a_schedule_topic_is_no_way_into_its_target(root: AskingAs, alice: AskingAs) -> None:
    settings = {"delivery.delay.mode": "record", "delivery.delay.target": "b1"}
    configs = tuple(CreatableTopicConfig(name=name, value=value) for name, value in settings.items())
    later = CreatableTopic(name="a.later", num_partitions=1, replication_factor=1, assignments=(), configs=configs)
    made = root.ask(CreateTopicsRequest(topics=(later,)), CreateTopicsResponse)
    assert [each.error_code for each in made.topics] == [0]
    allow(root, rule("alice", WRITE, TOPIC, "a", PatternKind.PREFIXED))
    assert produced(alice, production("a.later")) == {"a.later": NO_TOPIC}
    allow(root, rule("alice", WRITE, TOPIC, "b1"))
    assert produced(alice, production("a.later")) == {"a.later": ErrorCode.INVALID_RECORD}, "it does not say when"


def test_a_refused_produce_without_an_answer_ends_the_connection(root: AskingAs, alice: AskingAs) -> None:
    allow(root, rule("alice", WRITE, TOPIC, "a1"))
    with pytest.raises((ConnectionError, OSError)):
        produced(alice, production("b1", acks=0))


def test_transactional_records_need_the_transactional_id(root: AskingAs, alice: AskingAs) -> None:
    """CVE-2018-17196: the batches tell, not the request."""
    allow(root, rule("alice", WRITE, TOPIC, "a1"))
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert produced(alice, production("a1", "b1", transactional_id="tx", producer_id=7)) == {
        "a1": refused,
        "b1": refused,
    }
    sneaky = production("a1", producer_id=7)
    assert sneaky.transactional_id is None
    assert produced(alice, sneaky) == {"a1": refused}
    assert produced(alice, production("b1", transactional_id="tx", producer_id=7)) == {"b1": refused}


def fetching(name: str, session_id: int = 0, session_epoch: int = 0, replica: int = -1) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topics = () if session_epoch > 0 else (FetchTopic(topic=name, partitions=(part,)),)
    return FetchRequest(
        replica_id=replica,
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
    )


def codes_of(answer: FetchResponse) -> list[ErrorCode]:
    return [ErrorCode(each.error_code) for topic in answer.responses for each in topic.partitions]


def test_a_fetch_session_ends_to_give_records_when_the_right_is_taken_away(
    broker: Broker, root: AskingAs, alice: AskingAs
) -> None:
    allow(root, rule("alice", READ, TOPIC, "a1"), rule("bob", READ, TOPIC, "b1"))
    first = alice.ask(fetching("a1"), FetchResponse, 12)
    assert codes_of(first) == [ErrorCode.NONE]
    with AskingAs(broker.bootstrap, "bob") as bob:
        other = bob.ask(fetching("", first.session_id, 1), FetchResponse, 12)
        assert other.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        bob.ask(fetching("b1", first.session_id, -1), FetchResponse, 12)  # cannot end it either
    assert codes_of(alice.ask(fetching("", first.session_id, 1), FetchResponse, 12)) == [ErrorCode.NONE]
    root.ask(DeleteAclsRequest(filters=(removal(principal_filter="User:alice"),)), DeleteAclsResponse)
    assert codes_of(alice.ask(fetching("", first.session_id, 2), FetchResponse, 12)) == [NO_TOPIC]


def test_a_client_that_calls_itself_a_follower_needs_cluster_action(root: AskingAs, alice: AskingAs) -> None:
    """CVE-2018-1288."""
    allow(root, rule("alice", READ, TOPIC, "a1"))
    assert codes_of(alice.ask(fetching("a1", 0, -1, replica=1), FetchResponse, 12)) == [NO_TOPIC]
    allow(root, rule("alice", Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME))
    assert codes_of(alice.ask(fetching("a1", 0, -1, replica=1), FetchResponse, 12)) != [NO_TOPIC]


def topics_of(answer: MetadataResponse) -> dict[str | None, ErrorCode]:
    return {topic.name: ErrorCode(topic.error_code) for topic in answer.topics}


@pytest.mark.parametrize("version", [0, 1, 9, 13])
def test_metadata_has_the_topics_that_the_client_may_describe(root: AskingAs, alice: AskingAs, version: int) -> None:
    allow(root, rule("alice", READ, TOPIC, "a1"))
    everything = MetadataRequest(topics=() if version == 0 else None)
    assert topics_of(alice.ask(everything, MetadataResponse, version)) == {"a1": ErrorCode.NONE}
    for names in (("b1",), ("a1", "b1"), ("absent",)):
        named = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))
        expected = {name: ErrorCode.NONE if name == "a1" else NO_TOPIC for name in names}
        assert topics_of(alice.ask(named, MetadataResponse, version)) == expected


def test_metadata_creates_topics_only_for_clients_with_the_right(root: AskingAs, alice: AskingAs) -> None:
    allow(root, rule("alice", DESCRIBE, TOPIC, "new", PatternKind.PREFIXED))
    wanted = MetadataRequest(topics=(MetadataRequestTopic(name="new1"),))
    assert topics_of(alice.ask(wanted, MetadataResponse)) == {"new1": NO_TOPIC}
    assert topics_of(root.ask(MetadataRequest(topics=None), MetadataResponse)).keys() >= {"a1"}
    assert "new1" not in topics_of(root.ask(MetadataRequest(topics=None), MetadataResponse))
    allow(root, rule("alice", CREATE, TOPIC, "new1"))
    assert topics_of(alice.ask(wanted, MetadataResponse)) == {"new1": ErrorCode.NONE}
    allow(root, rule("alice", CREATE, CLUSTER, CLUSTER_NAME))
    other = MetadataRequest(topics=(MetadataRequestTopic(name="new2"),))
    assert topics_of(alice.ask(other, MetadataResponse)) == {"new2": ErrorCode.NONE}


def test_authorised_operations_are_those_of_the_asker(root: AskingAs, alice: AskingAs) -> None:
    allow(root, rule("alice", WRITE, TOPIC, "a1"), rule("alice", READ, TOPIC, "a1"))
    asked = MetadataRequest(
        topics=None, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    answer = alice.ask(asked, MetadataResponse, 10)
    assert answer.topics[0].topic_authorized_operations == 1 << READ | 1 << WRITE | 1 << DESCRIBE
    assert answer.cluster_authorized_operations == 0
    allow(root, rule("alice", Operation.ALTER, CLUSTER, CLUSTER_NAME))
    answer = alice.ask(asked, MetadataResponse, 10)
    assert answer.cluster_authorized_operations == 1 << Operation.ALTER | 1 << DESCRIBE
    described = alice.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), DescribeClusterResponse)
    assert described.cluster_authorized_operations == answer.cluster_authorized_operations


def test_offsets_of_hidden_topics_are_left_out_or_refused(root: AskingAs, alice: AskingAs) -> None:
    names = Names("a1", ZERO_ID, "g1", "")
    for topic in ("a1", "b1"):
        root.ask(requests(ApiKey.FIND_COORDINATOR, names, 4)[0], Struct, 4)
        commit = requests(ApiKey.OFFSET_COMMIT, Names(topic, ZERO_ID, "g1", ""), 9)[0]
        root.ask(commit, Struct, 9)
    allow(root, rule("alice", DESCRIBE, GROUP, "g1"), rule("alice", DESCRIBE, TOPIC, "a1"))

    def fetched(topics: tuple[OffsetFetchRequestTopics, ...] | None) -> dict[str, ErrorCode]:
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g1", topics=topics),))
        (group,) = alice.ask(request, OffsetFetchResponse, 9).groups
        return {topic.name: ErrorCode(topic.partitions[0].error_code) for topic in group.topics}

    assert fetched(None) == {"a1": ErrorCode.NONE}
    named = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=(0,)) for name in ("b1", "a1"))
    assert fetched(named) == {"a1": ErrorCode.NONE, "b1": NO_TOPIC}


def test_only_clients_that_may_describe_settings_get_those_of_a_new_topic(root: AskingAs, alice: AskingAs) -> None:
    allow(root, rule("alice", CREATE, TOPIC, "mine"))
    wish = CreatableTopic(name="mine", num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(wish, wish.replace(name="other")), validate_only=True)
    made, refused = alice.ask(request, CreateTopicsResponse).topics
    assert (made.error_code, made.topic_config_error_code, made.num_partitions, made.configs) == (0, NO_TOPIC, -1, None)
    assert (refused.name, refused.error_code) == ("other", NO_TOPIC)
    allow(root, rule("alice", Operation.DESCRIBE_CONFIGS, TOPIC, "mine"))
    made, _ = alice.ask(request, CreateTopicsResponse).topics
    assert made.topic_config_error_code == 0
    assert made.configs


def test_deleting_by_id_names_only_what_the_client_may_describe(root: AskingAs, alice: AskingAs) -> None:
    described = root.ask(MetadataRequest(topics=(MetadataRequestTopic(name="a1"),)), MetadataResponse)
    by_id = DeleteTopicState(name=None, topic_id=described.topics[0].topic_id)
    request = DeleteTopicsRequest(topics=(by_id,), timeout_ms=1_000)
    (result,) = alice.ask(request, DeleteTopicsResponse).responses
    assert (result.name, result.error_code) == (None, NO_TOPIC)
    allow(root, rule("alice", DESCRIBE, TOPIC, "a1"))
    (result,) = alice.ask(request, DeleteTopicsResponse).responses
    assert (result.name, result.error_code) == ("a1", NO_TOPIC)


def test_pages_of_topics_pass_over_the_hidden_ones(root: AskingAs, alice: AskingAs) -> None:
    allow(root, rule("alice", DESCRIBE, TOPIC, "a1"), rule("alice", DESCRIBE, TOPIC, "b2"))

    def page(*named: str, cursor: Cursor | None = None) -> tuple[dict[str | None, ErrorCode], str | None]:
        request = DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=name) for name in named), response_partition_limit=2, cursor=cursor
        )
        answer = alice.ask(request, DescribeTopicPartitionsResponse)
        following = answer.next_cursor
        codes = {topic.name: ErrorCode(topic.error_code) for topic in answer.topics}
        return codes, None if following is None else following.topic_name

    assert page() == ({"a1": ErrorCode.NONE}, "b2")
    assert page(cursor=Cursor(topic_name="b2", partition_index=0)) == ({"b2": ErrorCode.NONE}, None)
    assert page("a1", "b1") == ({"a1": ErrorCode.NONE, "b1": NO_TOPIC}, None)


def test_a_producer_needs_the_right_to_write_somewhere(root: AskingAs, alice: AskingAs) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)

    def code() -> int:
        return alice.ask(request, InitProducerIdResponse, 4).error_code

    assert code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allow(root, rule("alice", WRITE, TOPIC, "nowhere", PatternKind.PREFIXED))
    assert code() == ErrorCode.NONE
    allow(root, rule("alice", WRITE, TOPIC, "*", permission=Permission.DENY))
    assert code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allow(root, rule("alice", Operation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME))
    assert code() == ErrorCode.NONE


def beat(member: AskingAs, epoch: int, **more: Any) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id="patterns", member_id="m1", member_epoch=epoch, rebalance_timeout_ms=60_000, **more
    )
    answer = member.ask(request, ConsumerGroupHeartbeatResponse)
    assert answer.error_code == 0, answer
    return answer


def test_a_pattern_is_resolved_by_the_rights_of_the_member(broker: Broker, root: AskingAs, alice: AskingAs) -> None:
    root.ask(requests(ApiKey.FIND_COORDINATOR, Names("", ZERO_ID, "patterns", ""), 4)[0], Struct, 4)
    ids = {topic.topic_id: topic.name for topic in root.ask(MetadataRequest(topics=None), MetadataResponse).topics}
    allow(root, rule("alice", READ, GROUP, "patterns"), rule("alice", READ, TOPIC, "a1"))

    def assigned(answer: ConsumerGroupHeartbeatResponse) -> list[str]:
        assert answer.assignment is not None
        return sorted(str(ids[each.topic_id]) for each in answer.assignment.topic_partitions)

    def until_assigned(epoch: int) -> ConsumerGroupHeartbeatResponse:
        answer = beat(alice, epoch)
        while answer.assignment is None:
            answer = beat(alice, answer.member_epoch)
        return answer

    answer = beat(alice, 0, subscribed_topic_regex="[ab].*", topic_partitions=())
    if answer.assignment is None or not answer.assignment.topic_partitions:
        answer = until_assigned(answer.member_epoch)
    assert assigned(answer) == ["a1"]
    allow(root, rule("alice", READ, TOPIC, "b", PatternKind.PREFIXED))
    answer = until_assigned(answer.member_epoch)
    assert assigned(answer) == ["a1", "b1", "b2"]


def test_without_an_authorizer_markers_are_taken_from_the_listener_of_brokers_only() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with Broker(settings) as broker:
        ports = {}

        async def find(real: Any) -> None:
            ports.update({name: real.parts.server.port(name) for name in ("PLAINTEXT", "OTHER")})

        broker.call(find)
        (request,) = requests(ApiKey.WRITE_TXN_MARKERS, Names("t", ZERO_ID, "", ""), 1)
        codes = {}
        for name, port in ports.items():
            with Asking(f"127.0.0.1:{port}") as asking:
                answer = asking.ask(request, WriteTxnMarkersResponse, 1)
                codes[name] = ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)
    assert codes == {
        "PLAINTEXT": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "OTHER": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }


def test_a_very_long_list_is_checked_too(root: AskingAs, alice: AskingAs) -> None:
    allow(root, rule("alice", DESCRIBE, TOPIC, "a1"))
    named = tuple(MetadataRequestTopic(name=f"t{number}") for number in range(20_000))
    request = MetadataRequest(topics=(*named, MetadataRequestTopic(name="a1")), allow_auto_topic_creation=False)
    answer = topics_of(alice.ask(request, MetadataResponse))
    assert answer.pop("a1") == ErrorCode.NONE
    assert set(answer.values()) == {NO_TOPIC}
    assert len(answer) == 20_000


def test_a_share_fetch_needs_the_group_and_each_topic(broker: Broker, root: AskingAs, alice: AskingAs) -> None:
    ids = {topic.name: topic.topic_id for topic in root.ask(MetadataRequest(topics=None), MetadataResponse).topics}

    def fetched(epoch: int, *names: str) -> list[ErrorCode]:
        (request,) = requests(ApiKey.SHARE_FETCH, Names("a1", ids["a1"], "sharers", ""), 2)
        assert isinstance(request, ShareFetchRequest)
        part = request.topics[0].partitions
        topics = tuple(ShareFetchTopic(topic_id=ids[name], partitions=part) for name in names)
        answer = alice.ask(request.replace(topics=topics, share_session_epoch=epoch), ShareFetchResponse)
        if answer.error_code:
            return [ErrorCode(answer.error_code)]
        return [ErrorCode(each.error_code) for topic in answer.responses for each in topic.partitions]

    async def remembered(real: RealBroker) -> dict[tuple[str, str], list[tuple[bytes, int]]]:
        sessions = real.parts.share_leaders.get().sessions.sessions
        return {key: list(session.places) for key, session in sessions.items()}

    assert fetched(0, "a1", "b1") == [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    assert broker.call(remembered) == {}
    allow(root, rule("alice", READ, GROUP, "sharers"), rule("alice", READ, TOPIC, "a1"))
    assert NO_TOPIC in fetched(0, "a1", "b1")
    assert broker.call(remembered) == {("sharers", "m"): [(ids["a1"], 0)]}
    assert NO_TOPIC in fetched(1, "b1")
    assert broker.call(remembered) == {("sharers", "m"): [(ids["a1"], 0)]}
    allow(root, rule("alice", READ, TOPIC, "b1"))
    assert NO_TOPIC not in fetched(2, "b1")


def find_coordinator(root: AskingAs) -> None:
    """Makes the topic of groups."""
    (found,) = root.ask(FindCoordinatorRequest(coordinator_keys=("any",)), FindCoordinatorResponse).coordinators
    assert found.error_code == 0


def test_a_streams_heartbeat_needs_its_topics_and_makes_those_that_the_client_may(
    broker: Broker, root: AskingAs, alice: AskingAs
) -> None:
    def joined(*changelogs: str) -> StreamsGroupHeartbeatResponse:
        stores = tuple(streams_group_kit.topic(name) for name in changelogs)
        topology = streams_group_kit.topology(streams_group_kit.subtopology("0", "a1", changelogs=stores))
        return alice.ask(
            streams_group_kit.request("streamers", topology=topology, member="m"), StreamsGroupHeartbeatResponse
        )

    find_coordinator(root)
    assert joined().error_code == NO_GROUP
    allow(root, rule("alice", READ, GROUP, "streamers"))
    assert joined("store").error_code == NO_TOPIC
    allow(root, rule("alice", DESCRIBE, TOPIC, "a1"), rule("alice", DESCRIBE, TOPIC, "store"))
    answer = joined("store")
    details = {each.status_code: each.status_detail for each in answer.status or ()}
    assert "Unauthorized to CREATE on topics store" in details[3]
    allow(root, rule("alice", CREATE, TOPIC, "store"))
    assert 3 not in [each.status_code for each in joined("store").status or ()]


def test_a_streams_group_is_shown_to_those_who_may_see_its_topics(
    broker: Broker, root: AskingAs, alice: AskingAs
) -> None:
    def shown() -> int:
        request = StreamsGroupDescribeRequest(group_ids=("hidden",), include_authorized_operations=True)
        (group,) = alice.ask(request, StreamsGroupDescribeResponse).groups
        return group.error_code

    find_coordinator(root)
    topology = streams_group_kit.topology(streams_group_kit.subtopology("0", "b1"))
    joined = root.ask(streams_group_kit.request("hidden", topology=topology), StreamsGroupHeartbeatResponse)
    assert joined.error_code == 0
    assert shown() == NO_GROUP
    allow(root, rule("alice", DESCRIBE, GROUP, "hidden"))
    assert shown() == NO_TOPIC
    allow(root, rule("alice", DESCRIBE, TOPIC, "b1"))
    assert shown() == 0
