from __future__ import annotations

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from ixion.testing.broker import Broker
from tests.apis.asking import Asking


def moving(asking: Asking, *wanted: tuple[str, tuple[int, ...]]) -> list[tuple[str, int, tuple[int, ...]]]:
    topics = tuple(ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers) for name, numbers in wanted)
    request = ListPartitionReassignmentsRequest(topics=topics or None)
    answer = asking.ask(request, ListPartitionReassignmentsResponse)
    assert answer.error_code == ErrorCode.NONE
    return [
        (topic.name, each.partition_index, tuple(each.adding_replicas))
        for topic in answer.topics
        for each in topic.partitions
    ]


def test_what_is_under_way(broker: Broker, asking: Asking) -> None:
    broker.create_topic("t", 2)
    assert moving(asking) == []

    async def begin(running: RealBroker) -> None:
        known = running.parts.image.partition("t", 1)
        assert known is not None
        running.parts.image.topics["t"].partitions[1] = known._replace(adding=(7,))

    broker.call(begin)
    assert moving(asking) == [("t", 1, (7,))]
    assert moving(asking, ("t", (1,))) == [("t", 1, (7,))]
    assert moving(asking, ("t", (0,)), ("none", (0,))) == []
