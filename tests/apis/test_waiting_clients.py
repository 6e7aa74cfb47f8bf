"""An answer that waits for others keeps no bytes of its request, and does not outlive its client."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ixion.language.protocol.messages.k15_describe_groups import DescribeGroupsRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.txn_kit import init
from tests.log.support import batch

MIB = 1 << 20
NOBODY = 99  # a follower that never fetches


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 3_600_000}) as running:
        running.create_topic("t", 4)
        running.call(with_an_absent_follower)
        running.call(missing_clients_at_once)
        yield running


async def missing_clients_at_once(real: RealBroker) -> None:
    """A client that has closed its socket may have closed one half of it: it is given seconds otherwise."""
    server = real.parts.server
    server.set_limits(server.limits._replace(half_closed_ms=0))


async def with_an_absent_follower(real: RealBroker) -> None:
    replicas = real.parts.replicas
    for (topic, _), partition in list(replicas.partitions.items()):
        if topic == "t":
            both = (replicas.node_id, NOBODY)
            partition.make_leader(7, both, both)


def produce(*numbers: int, records: bytes, transactional_id: str | None = None) -> ProduceRequest:
    data = tuple([PartitionProduceData(index=number, records=records) for number in numbers])
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=3_600_000,
        topic_data=(TopicProduceData(name="t", partition_data=data),),
    )


def fetch() -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MIB)
    return FetchRequest(
        max_wait_ms=3_600_000, min_bytes=1, max_bytes=MIB, topics=(FetchTopic(topic="t", partitions=(wanted,)),)
    )


class Counts:
    """What the broker holds."""

    def __init__(self, broker: Broker) -> None:
        async def look(real: RealBroker) -> tuple[int, int, int, int]:
            network, replicas = real.parts.server.snapshot(), real.parts.replicas
            return (
                replicas.produce_purgatory.delayed,
                replicas.fetch_purgatory.delayed,
                network.pool_used,
                sum(network.connections.values()),
            )

        self.produces, self.fetches, self.bytes, self.connections = broker.call(look)


def until(broker: Broker, condition: Callable[[Counts], bool]) -> Counts:
    deadline = time.monotonic() + 20
    while not condition(counts := Counts(broker)):
        assert time.monotonic() < deadline, vars(counts)
    return counts


@pytest.mark.parametrize("numbers", [(0,), (0, 1, 2, 3)], ids=["one partition", "four partitions"])
def test_produces_that_wait_hold_no_records(broker: Broker, numbers: tuple[int, ...]) -> None:
    request = produce(*numbers, records=batch(bytes(MIB * 9 // 10 // len(numbers))))
    with ExitStack() as clients:
        tracemalloc.start()
        try:
            for _ in range(20):
                clients.enter_context(Raw(broker.bootstrap)).send(ApiKey.PRODUCE, 9, request)
            counts = until(broker, lambda now: now.produces == 20)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert counts.bytes == 0
        assert held < 6 * MIB  # of 18


def test_nor_do_transactional_ones(broker: Broker) -> None:
    with ExitStack() as clients:
        raws = [clients.enter_context(Raw(broker.bootstrap)) for _ in range(10)]
        producers = [init(raw, f"tx{number}") for number, raw in enumerate(raws)]
        tracemalloc.start()
        try:
            for number, (raw, producer) in enumerate(zip(raws, producers, strict=True)):
                records = batch(bytes(MIB * 2 // 10), producer=(*producer, 0), transactional=True)
                request = produce(0, 1, 2, 3, records=records, transactional_id=f"tx{number}")
                raw.send(ApiKey.PRODUCE, 12, request)
                del records, request
            counts = until(broker, lambda now: now.produces == 40)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert counts.bytes == 0
        assert held < 3 * MIB  # of 8
    assert until(broker, lambda now: now.produces == 0).bytes == 0


def test_what_waits_goes_with_its_client(broker: Broker) -> None:
    idle = Counts(broker).connections
    with ExitStack() as clients:
        for number in range(20):
            client = clients.enter_context(Raw(broker.bootstrap))
            if number % 2:
                client.send(ApiKey.PRODUCE, 9, produce(0, 1, records=batch(b"v")))
            else:
                client.send(ApiKey.FETCH, 12, fetch())
        until(broker, lambda now: (now.produces, now.fetches) == (10, 10))
    counts = until(broker, lambda now: now.connections == idle)
    assert (counts.produces, counts.fetches, counts.bytes) == (0, 0, 0)


def test_a_client_that_has_sent_ahead_is_missed_too(broker: Broker) -> None:
    idle = Counts(broker).connections
    with Raw(broker.bootstrap) as client:
        client.send(ApiKey.FETCH, 12, fetch())
        for _ in range(5):
            client.send(ApiKey.FETCH, 12, fetch())
        until(broker, lambda now: now.fetches == 1)
    counts = until(broker, lambda now: now.connections == idle)
    assert (counts.fetches, counts.bytes) == (0, 0)


def test_what_was_appended_stays_when_the_client_goes(broker: Broker) -> None:
    with Raw(broker.bootstrap) as client:
        client.send(ApiKey.PRODUCE, 9, produce(0, records=batch(b"v")))
        until(broker, lambda now: now.produces == 1)
    until(broker, lambda now: now.produces == 0)

    async def end(real: RealBroker) -> int:
        return real.parts.replicas.partitions["t", 0].log.end_offset

    assert broker.call(end) == 1


def test_a_member_that_goes_while_it_joins_stays_a_member(broker: Broker) -> None:
    idle = Counts(broker).connections
    protocols = (JoinGroupRequestProtocol(name="range", metadata=bytes(MIB // 2)),)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1_800_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    with Raw(broker.bootstrap) as other:
        assert other.ask(ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g")).error_code == 0

        def members() -> int:
            (group,) = other.ask(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=("g",))).groups
            return len(group.members)

        with Raw(broker.bootstrap) as client:
            client.send(ApiKey.JOIN_GROUP, 3, request)
            until(broker, lambda _now: members() == 1)
            assert Counts(broker).bytes == 0
        until(broker, lambda now: now.connections == idle + 1)
        assert members() == 1
