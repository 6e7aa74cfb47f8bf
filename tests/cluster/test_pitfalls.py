"""Known ways to lose data or stand still, provoked on three brokers over their sockets, or in the core without any.

docs/reliability.md has all twenty, with the tests of the others; the last test here reads that table.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.metadata.cluster_node import OURS_ALONE
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID, new_id
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.messages.k01_fetch import FetchRequest, FetchResponse
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrResponse
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaResponse
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataResponse
from ixion.language.protocol.messages.k07_controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ixion.language.protocol.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ixion.language.protocol.messages.k27_write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Cluster
from tests.apis.asking import Asking
from tests.log.support import batch
from tests.replica.nodes import Nodes
from tests.replica.test_control import Member, metadata, roles, state, stop
from tests.replica.world import SELF, World, offsets
from tests.testing.test_cluster import Writer, read

ENVELOPE = 58
ROOT = Path(__file__).parents[2]
SOON = {"replica.lag.time.max.ms": 1_000, "replica.fetch.wait.max.ms": 100, "replica.fetch.backoff.ms": 20}


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(3, SOON) as made:
        made.create_topic("t")
        yield made


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """All is well before and after."""
    shared.wait_healthy()
    yield shared
    shared.resume()
    shared.restart()
    shared.wait_healthy()


def epoch_of(cluster: Cluster, number: int) -> int:
    async def look(real: RealBroker) -> int:
        return real.parts.broker_epoch

    return cluster.brokers[number].call(look)


def produce_to(asking: Asking, topic: str, value: bytes) -> ErrorCode:
    """To one broker, whether it leads or not, with acks=all."""
    data = PartitionProduceData(index=0, records=batch(value))
    topics = (TopicProduceData(name=topic, partition_data=(data,)),)
    answer = asking.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics), ProduceResponse, 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def run(path: Path, work: Callable[[Nodes], Awaitable[None]]) -> None:
    async def bounded() -> None:
        nodes = Nodes(path, 3, 1)
        try:
            await asyncio.wait_for(work(nodes), 60)
        finally:
            await nodes.close()

    asyncio.run(bounded())


def test_pitfall_04_a_new_epoch_of_the_same_leader_is_reconciled(tmp_path: Path) -> None:
    """The follower misses LeaderAndIsr of the epoch in between, in which its leader cut what it still has."""

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.cut_off.add(2)
        nodes.nodes[1].produce(b"lost", acks=1)
        await nodes.settle()
        assert nodes.nodes[3].values() == [(0, 0, b"lost")]
        nodes.cut_off.clear()
        await nodes.lead(2, told=(1, 2), isr=(2,))
        nodes.nodes[2].produce(b"kept", acks=1)
        await nodes.settle()
        assert nodes.nodes[1].values() == [(0, 1, b"kept")]
        await nodes.lead(1, isr=(1, 2))
        await nodes.settle()
        assert [node.values() for node in nodes.nodes.values()] == [[(0, 1, b"kept")]] * 3

    run(tmp_path, work)


def test_pitfall_07_the_last_replica_in_sync_returns_with_less_than_another(cluster: Cluster) -> None:
    """It loses what it had not synced, and must not lead: the other one would cut what it has more."""
    cluster.create_topic("last", replication=2, min_insync_replicas=1)
    cluster.wait_healthy()
    last = cluster.leader("last")
    other = next(number for number in cluster.isr("last") if number != last)
    for value in (b"0", b"1"):
        with Asking(cluster.brokers[last].bootstrap) as asking:
            assert produce_to(asking, "last", value) == ErrorCode.NONE
    cluster.shut_down(other)
    cluster.wait(lambda: cluster.isr("last") == (last,), "only one is in sync")

    async def look(real: RealBroker) -> str:
        return real.parts.replicas.partitions["last", 0].log.folder

    folder = cluster.brokers[last].call(look)
    cluster.kill(last)
    (segment,) = Path(folder).glob("*.log")
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size // 2)  # the page cache is gone with the power
    cluster.restart(other)
    cluster.restart(last)
    assert cluster.leader("last") == other
    cluster.wait_healthy()

    async def end(real: RealBroker) -> int:
        return real.parts.replicas.partitions["last", 0].log.end_offset

    assert [cluster.brokers[number].call(end) for number in (last, other)] == [2, 2]


def test_pitfall_08_a_zombie_leader_acknowledges_nothing(cluster: Cluster) -> None:
    """It is paused beyond its session, with a produce in its socket; another leads when it goes on."""
    writer = Writer(cluster)
    writer.write()
    zombie = cluster.leader("t")
    answers: list[ErrorCode] = []

    def produce() -> None:
        answers.append(produce_to(asking, "t", b"zombie"))

    with Asking(cluster.brokers[zombie].bootstrap) as asking:
        cluster.pause(zombie, expire=True)
        sender = threading.Thread(target=produce)
        sender.start()
        assert cluster.leader("t") != zombie
        writer.write()
        cluster.resume(zombie)
        sender.join(60)
    assert answers != [ErrorCode.NONE]
    assert len(answers) == 1
    cluster.wait_healthy()
    writer.write()  # and with it the high watermark reaches every follower

    async def end(real: RealBroker) -> int:
        return real.parts.replicas.partitions["t", 0].log.end_offset

    found = read(cluster, cluster.brokers[cluster.leader("t")].call(end))
    assert b"zombie" not in found
    assert found[-len(writer.sent) :] == writer.sent


def test_pitfall_09_a_controller_of_the_past_is_one_no_longer(cluster: Cluster) -> None:
    old = cluster.controller
    cluster.pause(old, expire=True)
    new = cluster.controller
    assert new != old
    cluster.create_topic(f"while-{old}-is-paused", replication=2)
    cluster.resume(old)
    cluster.wait_healthy()

    async def look(real: RealBroker) -> tuple[bool, int]:
        return getattr(real.parts.controller, "is_active", False), real.parts.image.controller_id

    def agreed() -> bool:
        found = {number: member.call(look) for number, member in cluster.brokers.items()}
        return [number for number, (active, _) in found.items() if active] == [new] and {
            known for _, known in found.values()
        } == {new}

    cluster.wait(agreed, "all brokers know the same controller, and no other is active")


def test_pitfall_10_a_broker_that_restarts_before_anybody_looks(cluster: Cluster) -> None:
    writer = Writer(cluster)
    number = cluster.leader("t")
    before = epoch_of(cluster, number)
    cluster.kill(number)
    cluster.brokers[number].start()  # at once: the controller may see neither that it went nor that it came
    assert epoch_of(cluster, number) > before
    writer.write()
    cluster.wait_healthy()


def test_pitfall_14_a_follower_that_stops_does_not_return_to_the_isr(cluster: Cluster) -> None:
    writer = Writer(cluster)
    for _ in range(4):
        follower = next(number for number in cluster.brokers if number != cluster.leader("t"))
        writing = threading.Thread(target=writer.write, args=(30,))
        writing.start()
        cluster.shut_down(follower)
        cluster.wait(lambda: follower not in cluster.isr("t"), "it has left the ISR")  # noqa: B023
        writing.join(60)
        assert not writing.is_alive()
        writer.write()
        assert follower not in cluster.isr("t")
        cluster.restart(follower)
        cluster.wait_healthy()


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_pitfall_15_control_requests_in_any_order_end_as_in_theirs(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    def request_of(epoch: int, kind: str) -> Any:
        if kind == "stop":
            return stop(epoch, delete=False)
        return roles(state(epoch=epoch, leader=SELF if kind == "lead" else 2))

    kinds = data.draw(st.lists(st.sampled_from(["lead", "follow", "stop"]), min_size=2, max_size=8))
    kinds[-1] = data.draw(st.sampled_from(["lead", "follow"]))
    ordered = [request_of(epoch, kind) for epoch, kind in enumerate(kinds)]
    chance = random.Random(data.draw(st.integers(0, 1 << 30)))
    muddled: list[Any] = []
    for request in ordered:
        muddled += [request] * chance.randint(1, 2)
    for place in range(len(muddled) - 1):
        if chance.random() < 0.4:
            muddled[place], muddled[place + 1] = muddled[place + 1], muddled[place]

    def outcome(requests: list[Any]) -> tuple[bool, int, int]:
        world = World(tmp_path_factory.mktemp("control"))
        member = Member(world)
        try:
            for request in requests:
                member.run(request)
            partition = world.replicas.partitions["t", 0]
            return partition.leads, partition.leader_id, partition.leader_epoch
        finally:
            member.threads.shutdown()
            world.close()

    assert outcome(muddled) == outcome(ordered)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["produce", "copy", "read", "committed", "step down", "lead"]), max_size=40))
def test_pitfall_19_a_read_never_sees_beyond_the_limits_that_it_reports(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    from ixion.broker.log.view import Bound

    world = World(tmp_path_factory.mktemp("limits"))
    epoch = 0
    try:
        partition = world.lead(replicas=(SELF, 2))
        for step in ["produce", *steps, "read"]:
            log = partition.log
            if step == "produce" and partition.leads:
                world.produce(b"v", acks=1)
            elif step == "copy" and partition.leads:
                world.follower_fetches(2, min(log.end_offset, partition.followers[2].end_offset + 1))
            elif step == "step down" and partition.leads:
                epoch += 1
                world.replicas.follow("t", 0, partition.topic_id, 2, epoch, (SELF, 2), (SELF, 2), 0)
                log.truncate_to(log.high_watermark)
            elif step == "lead" and not partition.leads:
                epoch += 1
                partition = world.lead(epoch=epoch, replicas=(SELF, 2))
            bound = Bound.VISIBLE_STABLE if step == "committed" else Bound.VISIBLE
            (result,) = world.fetch(wait_ms=0, bound=bound)
            if result.code == ErrorCode.NONE:
                assert all(offset < result.high_watermark for offset in offsets(result))
                assert result.log_start <= result.last_stable_offset <= result.high_watermark <= log.end_offset
    finally:
        world.close()


def test_pitfall_20_an_expired_session_costs_no_role_for_good(cluster: Cluster) -> None:
    writer = Writer(cluster)
    for role in ("controller", "leader", "follower"):
        leader = cluster.leader("t")
        others = [number for number in cluster.brokers if number != leader]
        number = {"controller": cluster.controller, "leader": leader, "follower": others[0]}[role]
        before = epoch_of(cluster, number)
        cluster.expire(number)
        cluster.wait(lambda: epoch_of(cluster, number) > before, f"the {role} is registered again")  # noqa: B023
        cluster.wait_healthy()
        writer.write()
        assert cluster.controller in cluster.brokers


def test_brokers_that_stop_all_at_once_do_not_wait_for_each_other() -> None:
    """Nobody can take the leaders of the last one, and waiting would not help."""
    patient = {"controlled.shutdown.retry.backoff.ms": 600_000}
    with Cluster(3, {**SOON, **patient}) as cluster:
        cluster.create_topic("t", partitions=6)
        cluster.wait_healthy()
        stops = [threading.Thread(target=member.stop) for member in cluster.brokers.values()]
        for stopping in stops:
            stopping.start()
        for stopping in stops:
            stopping.join(60)
        assert not any(stopping.is_alive() for stopping in stops)


# Duties of a member (docs/reliability.md) that have no other test.


def test_only_the_controller_says_that_a_topic_is_unknown(cluster: Cluster) -> None:
    """A client that repeats DeleteTopics takes "unknown topic" for the success of its first attempt. A broker that has
    just started knows no topic yet."""
    name = f"unknown-{random.randrange(1 << 30)}"
    wish = DeleteTopicState(name=name, topic_id=ZERO_ID)
    by_id = DeleteTopicState(name=None, topic_id=new_id())
    request = DeleteTopicsRequest(topics=(wish, by_id), topic_names=(), timeout_ms=10_000)
    for number in cluster.brokers:
        with Asking(cluster.brokers[number].bootstrap) as asking:
            codes = [each.error_code for each in asking.ask(request, DeleteTopicsResponse, 6).responses]
        if number == cluster.controller:
            assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
        else:
            assert codes == [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER]


def test_duty_02_requests_between_brokers_need_no_api_versions(cluster: Cluster) -> None:
    """Apache Kafka 3.9 sends them first on a connection, in the versions of inter.broker.protocol.version."""
    number = cluster.controller
    old: dict[str, Any] = {"broker_epoch": 0}
    asked: list[tuple[Struct, type[Struct], int]] = [
        (roles(state(), **old), LeaderAndIsrResponse, 7),
        (stop(0, delete=True, **old), StopReplicaResponse, 4),
        (metadata(**old), UpdateMetadataResponse, 8),
        (ControlledShutdownRequest(broker_id=number, broker_epoch=0), ControlledShutdownResponse, 3),
        (WriteTxnMarkersRequest(markers=()), WriteTxnMarkersResponse, 1),
        (OffsetForLeaderEpochRequest(replica_id=2, topics=()), OffsetForLeaderEpochResponse, 4),
        (ListOffsetsRequest(replica_id=2, topics=()), ListOffsetsResponse, 9),
        (FetchRequest(max_wait_ms=0, min_bytes=0, topics=()), FetchResponse, 17),
    ]
    for request, answer, version in asked:
        with Asking(cluster.brokers[number].bootstrap) as asking:
            found = asking.ask(request, answer, version)
        if "broker_epoch" in type(request).__annotations__:
            assert getattr(found, "error_code") == ErrorCode.STALE_BROKER_EPOCH, type(request)  # noqa: B009


@pytest.fixture
def without_features(cluster: Cluster) -> Iterator[Cluster]:
    """As a cluster on ZooKeeper begins; one of ixion alone has more."""

    def put(levels: dict[str, int]) -> None:
        async def change(real: RealBroker) -> None:
            await real.parts.controller.configs.change_features(lambda _: levels)

        async def known(real: RealBroker) -> dict[str, int]:
            return dict(real.parts.image.features)

        cluster.brokers[cluster.controller].call(change)
        cluster.wait(lambda: cluster.brokers[1].call(known) == levels, "broker 1 knows the features")

    put({})
    yield cluster
    put(OURS_ALONE)


def test_duty_03_and_16_a_cluster_offers_what_apache_kafka_knows(without_features: Cluster) -> None:
    cluster = without_features
    with Asking(cluster.brokers[1].bootstrap) as asking:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = asking.ask(request, ApiVersionsResponse, 4)
    offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    low, high = offered[ApiKey.ALTER_PARTITION]
    assert low <= 2 <= 3 <= high
    assert offered[ApiKey.ALLOCATE_PRODUCER_IDS][0] == 0
    assert offered[ApiKey.ADD_PARTITIONS_TO_TXN][1] >= 4
    assert ENVELOPE not in offered
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert levels.get("group.version", 0) == 0
    assert levels.get("transaction.version", 0) < 2


def test_duty_22_the_controller_comes_by_the_control_plane() -> None:
    listeners = {
        "listeners": "CONTROL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "CONTROL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "control.plane.listener.name": "CONTROL",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with Cluster(2, {**SOON, **listeners, "min.insync.replicas": 1}) as cluster:
        cluster.create_topic("t")
        Writer(cluster).write()
        cluster.wait_healthy()

        async def requests(real: RealBroker) -> int:
            return sum(each.connections.get("CONTROL", 0) for each in [real.parts.server.snapshot()])

        other = 3 - cluster.controller
        assert cluster.brokers[other].call(requests) == 1, "the controller's connection"


def test_every_pitfall_and_every_duty_has_its_test() -> None:
    """The tables of docs/reliability.md name tests that exist."""
    text = (ROOT / "docs" / "reliability.md").read_text()
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", text, re.MULTILINE)
    numbers = [int(number) for number, _ in rows]
    assert numbers == [*range(1, 21), *range(1, 23)]
    for number, row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, f"row {number} names no test"
        for file, name in named:
            assert re.search(rf"^( {{4}})?(def|class) {name}\b", (ROOT / file).read_text(), re.MULTILINE), (file, name)
