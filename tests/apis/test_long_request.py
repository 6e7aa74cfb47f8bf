"""A request of very many elements is answered as any other, in turns; its memory counts; a client that goes ends it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from devtools.stalls import LIMIT_MS
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from ixion.timer import turns
from tests.apis.raw import Raw
from tests.apis.test_waiting_clients import Counts, until

MANY = 20_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"auto.create.topics.enable": False}) as running:
        running.create_topic("t", 1)
        yield running


def offsets(count: int) -> ListOffsetsRequest:
    wanted = tuple(ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(count))
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=wanted),))


def test_it_is_answered_in_whole_and_in_order(broker: Broker) -> None:
    with Raw(broker.bootstrap) as client:
        client.send(ApiKey.LIST_OFFSETS, 7, offsets(MANY))
        client.send(ApiKey.LIST_OFFSETS, 7, offsets(2))
        (topic,) = client.answer().topics
        assert [each.partition_index for each in topic.partitions] == list(range(MANY))
        assert [each.error_code for each in topic.partitions][:2] == [0, 3]
        (topic,) = client.answer().topics
        assert [each.error_code for each in topic.partitions] == [0, 3]


def test_a_long_answer_to_a_short_request_is_sent(broker: Broker) -> None:
    broker.create_topic("wide", 1_500)
    with Raw(broker.bootstrap) as client:
        answer = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=(MetadataRequestTopic(name="wide"),)))
        assert len(answer.topics[0].partitions) == 1_500


def test_an_awaited_answer_is_sent(broker: Broker) -> None:
    """A handler that works on another thread or in a task."""
    names = tuple(f"g{number}" for number in range(MANY))
    with Raw(broker.bootstrap) as client:
        answer = client.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=names))
        assert len(answer.results) == MANY


def test_its_memory_counts_and_it_ends_with_its_client(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_NS", -1)  # a turn is a step, so that it lasts
    idle = Counts(broker).connections

    async def waiting(real: RealBroker) -> int:
        return int(real.parts.server._shared.lane.waiting)

    with Raw(broker.bootstrap) as client:
        client.send(ApiKey.LIST_OFFSETS, 7, offsets(200_000))
        until(broker, lambda now: now.bytes > 3_000_000)
    until(broker, lambda now: now.connections == idle and now.bytes == 0)
    monkeypatch.undo()
    until(broker, lambda _now: broker.call(waiting) == 0)


def test_a_bad_one_ends_its_connection(broker: Broker) -> None:
    with Raw(broker.bootstrap) as client, pytest.raises((AssertionError, ConnectionError)):
        client.ask(ApiKey.LIST_OFFSETS, 7, offsets(250_001))


def test_no_turn_of_the_loop_is_long(broker: Broker) -> None:
    async def longest_ms(real: RealBroker) -> int:
        return int(real.parts.stalls.longest_busy_ns) // 1_000_000

    async def start_over(real: RealBroker) -> None:
        real.parts.stalls.start_over()

    names = tuple(MetadataRequestTopic(name=f"unknown-{number}") for number in range(MANY))
    gc.disable()  # the broker shares this process, whose objects take the collector 200 ms to look at
    try:
        with Raw(broker.bootstrap) as client:
            broker.call(start_over)
            client.ask(ApiKey.LIST_OFFSETS, 7, offsets(MANY))
            client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=names))
        assert broker.call(longest_ms) <= LIMIT_MS
    finally:
        gc.enable()
