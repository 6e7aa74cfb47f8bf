"""What a topology needs of its topics."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.group.streams.configure import MOST_TASKS, Configured, configure
from ixion.broker.coordinators.group.streams.states import StatusCode
from ixion.broker.coordinators.group.streams.topology import MOST_PARTS, topology_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k88_streams_group_heartbeat import Subtopology
from ixion.timer.turns import finish
from tests.apis.streams_group_kit import subtopology, topic, topology


def configured(*subtopologies: Subtopology, **topics: int) -> Configured:
    made = finish(topology_of(topology(*subtopologies)))
    return finish(configure(made, 0, topics.get))


def test_a_topology_without_internal_topics() -> None:
    found = configured(subtopology("0", "a", "b"), a=2, b=5)
    assert (found.status, found.tasks, found.to_create) == (None, {"0": 5}, ())


def test_missing_source_topics() -> None:
    found = configured(subtopology("0", "a", "b"), a=2)
    assert (found.status, found.detail) == (StatusCode.MISSING_SOURCE_TOPICS, "Source topics b are missing.")
    many = configured(subtopology("0", *(f"s{number:02}" for number in range(12))))
    assert many.detail.endswith("s08, s09 and 2 more are missing.")


def test_partitions_of_internal_topics_follow_the_sources_downstream() -> None:
    found = configured(
        subtopology("2", repartition=(topic("late"),), changelogs=(topic("store"),)),
        subtopology("1", repartition=(topic("early"),), sinks=("late",)),
        subtopology("0", "a", "b", sinks=("early",)),
        a=2,
        b=5,
    )
    assert found.status is StatusCode.MISSING_INTERNAL_TOPICS
    assert {each.name: each.partitions for each in found.to_create} == {"early": 5, "late": 5, "store": 5}
    assert found.tasks == {"0": 5, "1": 5, "2": 5}


def test_a_repartition_topic_may_name_its_partitions() -> None:
    found = configured(subtopology("0", "a", sinks=("r",)), subtopology("1", repartition=(topic("r", 7),)), a=2)
    assert [(each.name, each.partitions) for each in found.to_create] == [("r", 7)]
    assert found.tasks == {"0": 2, "1": 7}


def test_copartitioned_topics() -> None:
    joined = subtopology("1", "b", repartition=(topic("r"),), together=(((0,), (0,)),))
    found = configured(subtopology("0", "a", sinks=("r",)), joined, a=2, b=6)
    assert [(each.name, each.partitions) for each in found.to_create] == [("r", 6)], "users' topics decide"
    fixed = subtopology("1", "b", repartition=(topic("r", 3),), together=(((0,), (0,)),))
    found = configured(subtopology("0", "a", sinks=("r",)), fixed, a=2, b=6)
    assert found.status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "r has 3 partitions" in found.detail
    two = subtopology("1", repartition=(topic("r"), topic("q")), together=(((), (0, 1)),))
    found = configured(subtopology("0", "a", sinks=("r",)), subtopology("2", "b", sinks=("q",)), two, a=2, b=6)
    assert {each.name: each.partitions for each in found.to_create} == {"r": 6, "q": 6}, "the largest decides"


def test_an_internal_topic_of_another_size() -> None:
    found = configured(subtopology("0", "a", changelogs=(topic("store"),)), a=2, store=3)
    assert found.status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert found.detail == "Existing topic store has different number of partitions: expected 2, found 3"


def test_a_repartition_topic_that_nobody_writes() -> None:
    found = configured(subtopology("0", "a"), subtopology("1", repartition=(topic("r"),)), a=1)
    assert found.status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    loop = configured(subtopology("0", "a"), subtopology("1", repartition=(topic("r"),), sinks=("r",)), a=1)
    assert loop.status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS


def test_too_many_tasks() -> None:
    found = configured(subtopology("0", "a"), a=MOST_TASKS + 1)
    assert found.status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert str(MOST_TASKS) in found.detail


def test_a_topology_has_a_bound() -> None:
    with pytest.raises(KafkaError, match=str(MOST_PARTS)) as caught:
        finish(topology_of(topology(subtopology("0", *(f"t{number}" for number in range(MOST_PARTS + 1))))))
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
