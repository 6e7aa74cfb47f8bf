"""The topology of a streams application, as its first member sends it and as the log keeps it.

A topology consists of subtopologies. Each reads source topics: those that users make, and *repartition topics*, into
which other subtopologies write. A subtopology with state has *changelog topics*. The broker makes both kinds of
internal topics (see `configure`). All topics of one *copartition group* must have the same number of partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Final

from ixion.broker.replica.internal_topic import INTERNAL
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_name import fault_of
from ixion.language.protocol.messages import k88_streams_group_heartbeat as wire
from ixion.language.protocol.storage import encode
from ixion.language.protocol.stored import streams_group as table
from ixion.language.protocol.stored.streams_group import Subtopology
from ixion.timer.turns import Steps

MOST_PARTS: Final = 5_000  # subtopologies, topics, settings and numbers; large applications have some hundred
BYTES_PER_PART: Final = 250  # with its place in tables, as measured


class Topology:
    """`stored` is its record. Two topologies are equal if their records are."""

    def __init__(self, stored: table.StreamsGroupTopologyValue, data: bytes) -> None:
        self.stored = stored
        self.data = data
        self.epoch: int = stored.epoch
        self.subtopologies: tuple[Subtopology, ...] = stored.subtopologies
        self.held_bytes = getsizeof(data) + 2 * len(data)
        self.readers: dict[str, list[str]] = {}  # by source topic: the subtopologies that read it
        self.required: list[str] = []  # all topics that must exist

    def same_as(self, other: Topology) -> bool:
        return self.data == other.data

    def sources_of(self, subtopology: Subtopology) -> list[str]:
        return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def topology_of(sent: wire.Topology) -> Steps[Topology]:
    """KafkaError STREAMS_INVALID_TOPOLOGY if it cannot be one."""
    subtopologies: list[Subtopology] = []
    parts = 0
    seen: set[str] = set()
    for name in names_of(sent):
        fault = "the broker keeps its own records there" if name in INTERNAL else fault_of(name)
        if fault:
            raise invalid(f"a topology cannot have topic {name!r}: {fault}")
        yield
    for each in sent.subtopologies:
        if each.subtopology_id in seen:
            raise invalid(f"subtopology {each.subtopology_id} is in the topology twice")
        seen.add(each.subtopology_id)
        parts += yield from _check(each)
        if parts > MOST_PARTS:
            raise invalid(f"the topology has more than {MOST_PARTS} subtopologies, topics and settings")
        subtopologies.append(
            Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                source_topic_regex=(),
                state_changelog_topics=_infos(each.state_changelog_topics),
                repartition_sink_topics=each.repartition_sink_topics,
                repartition_source_topics=_infos(each.repartition_source_topics),
                copartition_groups=tuple(
                    table.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=(),
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in each.copartition_groups
                ),
            )
        )
        yield
    if not subtopologies:
        raise invalid("the topology has no subtopology")
    subtopologies.sort(key=lambda each: each.subtopology_id)
    yield
    stored = table.StreamsGroupTopologyValue(epoch=sent.epoch, subtopologies=tuple(subtopologies))
    return (yield from indexed(stored))


def indexed(stored: table.StreamsGroupTopologyValue) -> Steps[Topology]:
    parts = 0
    made = Topology(stored, encode(stored, 0))
    yield
    required: dict[str, None] = {}
    for each in stored.subtopologies:
        sources = made.sources_of(each)
        for name in sources:
            made.readers.setdefault(name, []).append(each.subtopology_id)
        required.update(dict.fromkeys(sources))
        required.update((topic.name, None) for topic in each.state_changelog_topics)
        parts += 1 + len(sources) + len(each.repartition_sink_topics)
        parts += sum(1 + len(topic.topic_configs) for topic in each.state_changelog_topics)
        yield
    made.required = list(required)
    made.held_bytes += parts * BYTES_PER_PART
    return made


def names_of(sent: wire.Topology) -> Iterable[str]:
    """Every topic that the topology names."""
    for each in sent.subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics):
            yield topic.name


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _check(sent: wire.Subtopology) -> Steps[int]:
    """How many parts it has."""
    name = sent.subtopology_id
    if sent.source_topic_regex:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "patterns for source topics are not supported, as in Kafka 4.3")
    if not sent.source_topics and not sent.repartition_source_topics:
        raise invalid(f"subtopology {name} has no source topic")
    parts = 1 + len(sent.source_topics) + len(sent.repartition_sink_topics)
    for topic in sent.state_changelog_topics:
        if topic.partitions != 0:
            raise invalid(
                f"changelog topic {topic.name} must leave its number of partitions open, but names {topic.partitions}"
            )
        parts += 1 + len(topic.topic_configs)
        yield
    for topic in sent.repartition_source_topics:
        if topic.partitions < 0:
            raise invalid(f"repartition topic {topic.name} names {topic.partitions} partitions")
        parts += 1 + len(topic.topic_configs)
        yield
    for group in sent.copartition_groups:
        if group.source_topic_regex:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "patterns for source topics are not supported, as in Kafka 4.3")
        _check_indices(name, group.source_topics, len(sent.source_topics))
        _check_indices(name, group.repartition_source_topics, len(sent.repartition_source_topics))
        parts += 1 + len(group.source_topics) + len(group.repartition_source_topics)
        yield
    return parts


def _check_indices(name: str, indices: Sequence[int], count: int) -> None:
    if indices and not (min(indices) >= 0 and max(indices) < count):
        raise invalid(f"a copartition group of subtopology {name} points at a topic that is not there")


def _infos(sent: Iterable[wire.TopicInfo]) -> tuple[table.TopicInfo, ...]:
    return tuple(
        table.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=tuple(table.TopicConfig(key=each.key, value=each.value) for each in topic.topic_configs),
        )
        for topic in sent
    )
