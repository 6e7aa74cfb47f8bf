"""Decides how many partitions the internal topics of a topology have, and whether its topics are as it needs them.

    source topics missing            MISSING_SOURCE_TOPICS             nothing else is decided
    repartition topics               as many partitions as the topology says; else as many as the largest source topic
                                     of the subtopologies that write into it, found from upstream to downstream
    copartition groups               all of their topics must have as many partitions: those of users decide, else a
                                     number that the topology says, else the largest; INCORRECTLY_PARTITIONED_TOPICS
    changelog topics                 as many partitions as the largest source topic of the subtopology
    an internal topic exists         it must have that number of partitions, or INCORRECTLY_PARTITIONED_TOPICS
    internal topics missing          MISSING_INTERNAL_TOPICS; the broker makes them

A subtopology has as many tasks as its largest source topic has partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ixion.broker.coordinators.group.streams.states import StatusCode
from ixion.broker.coordinators.group.streams.topology import Topology
from ixion.language.protocol.stored.streams_group import Subtopology, TopicInfo
from ixion.timer.turns import Steps

MOST_TASKS: Final = 10_000  # of a group, without standby tasks; one member takes them in some 10 ms
MOST_NAMED: Final = 10  # topics in a message

Count = Callable[[str], int | None]  # the partitions of an existing topic


class InternalTopic(NamedTuple):
    name: str
    partitions: int
    replication: int  # -1: the broker's default
    config: Mapping[str, str]


class Configured(NamedTuple):
    """A topology and the topics of the cluster, put together."""

    topology: Topology
    metadata_hash: int
    status: StatusCode | None = None  # None: it is ready
    detail: str = ""
    partitions: Mapping[str, int] = {}  # of its source and internal topics; empty if they could not be decided
    tasks: Mapping[str, int] = {}  # by subtopology
    to_create: tuple[InternalTopic, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.status is None


class MisfitError(Exception):
    """The topics do not fit the topology."""


def configure(topology: Topology, metadata_hash: int, count: Count) -> Steps[Configured]:
    internal = {
        topic.name
        for each in topology.subtopologies
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }
    yield
    missing = sorted(
        {
            name
            for each in topology.subtopologies
            for name in each.source_topics
            if name not in internal and count(name) is None
        }
    )
    yield
    if missing:
        detail = f"Source topics {listed(missing)} are missing."
        return Configured(topology, metadata_hash, StatusCode.MISSING_SOURCE_TOPICS, detail)
    try:
        return (yield from _decide(topology, metadata_hash, count))
    except MisfitError as misfit:
        return Configured(topology, metadata_hash, StatusCode.INCORRECTLY_PARTITIONED_TOPICS, str(misfit))


def _decide(topology: Topology, metadata_hash: int, count: Count) -> Steps[Configured]:
    infos = {topic.name: topic for each in topology.subtopologies for topic in each.repartition_source_topics}
    decided = yield from _repartition_counts(topology, infos, count)

    def partitions_of(name: str) -> int:
        """An internal topic that exists is compared with what is decided below."""
        known = decided.get(name)
        if known is None:
            known = count(name)
        if known is None:
            raise MisfitError(f"The number of partitions of topic {name} is not known.")
        return known

    for each in topology.subtopologies:
        _copartition(each, infos, decided, partitions_of)
        yield
    tasks: dict[str, int] = {}
    internal: dict[str, TopicInfo] = dict(infos)
    for each in topology.subtopologies:
        most = max(partitions_of(name) for name in topology.sources_of(each))
        tasks[each.subtopology_id] = most
        for topic in each.state_changelog_topics:
            if topic.name not in topology.readers:  # a source topic that is its own changelog stays as it is
                internal[topic.name] = topic
                decided[topic.name] = max(most, decided.get(topic.name, 0))
        yield
    total = sum(tasks.values())
    if total > MOST_TASKS:
        raise MisfitError(f"The topology has {total} tasks; {MOST_TASKS} are allowed.")
    to_create: list[InternalTopic] = []
    for name, topic in sorted(internal.items()):
        found = count(name)
        if found is None:
            config = {each.key: each.value for each in topic.topic_configs}
            to_create.append(InternalTopic(name, decided[name], topic.replication_factor or -1, config))
        elif found != decided[name]:
            raise MisfitError(
                f"Existing topic {name} has different number of partitions: expected {decided[name]}, found {found}"
            )
        yield
    partitions = {name: partitions_of(name) for name in topology.required}
    status, detail = None, ""
    if to_create:
        status = StatusCode.MISSING_INTERNAL_TOPICS
        detail = f"Internal topics are missing: {listed([topic.name for topic in to_create])}"
    return Configured(topology, metadata_hash, status, detail, partitions, tasks, tuple(to_create))


def _repartition_counts(topology: Topology, infos: Mapping[str, TopicInfo], count: Count) -> Steps[dict[str, int]]:
    """A repartition topic that several subtopologies write into takes the largest of what they read."""
    decided = {name: topic.partitions for name, topic in infos.items() if topic.partitions > 0}
    writers: dict[str, list[Subtopology]] = {}
    for each in topology.subtopologies:
        for sink in each.repartition_sink_topics:
            if sink in infos:
                writers.setdefault(sink, []).append(each)
        yield
    left = [name for name in infos if name not in decided]
    while left:
        waiting: list[str] = []
        for name in left:
            known = [
                found
                for writer in writers.get(name, ())
                for source in topology.sources_of(writer)
                if (found := decided.get(source) if source in infos else count(source)) is not None
            ]
            if known:
                decided[name] = max(known)
            else:
                waiting.append(name)
            yield
        if len(waiting) == len(left):
            raise MisfitError(f"The number of partitions of repartition topics {listed(sorted(left))} cannot be found.")
        left = waiting
    return decided


def _copartition(
    subtopology: Subtopology,
    infos: Mapping[str, TopicInfo],
    decided: dict[str, int],
    partitions_of: Callable[[str], int],
) -> None:
    for group in subtopology.copartition_groups:
        sources = [subtopology.source_topics[place] for place in group.source_topics]
        theirs = [subtopology.repartition_source_topics[place].name for place in group.repartition_source_topics]
        theirs += [name for name in sources if name in infos]
        users = [name for name in sources if name not in infos]
        fixed = [name for name in theirs if infos[name].partitions > 0]
        if not theirs and not users:
            continue
        deciding = users or fixed
        counts = {name: partitions_of(name) for name in deciding or theirs}
        if deciding and len(set(counts.values())) > 1:
            raise MisfitError(f"Topics are not copartitioned: {shown(counts)}")
        wanted = max(counts.values())
        for name in theirs:
            if name in fixed and decided[name] != wanted:
                raise MisfitError(
                    f"Repartition topic {name} has {decided[name]} partitions, "
                    f"but the topics that it is copartitioned with have {wanted}."
                )
            decided[name] = wanted


def listed(names: list[str]) -> str:
    rest = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def shown(counts: Mapping[str, int]) -> str:
    return listed([f"{name} ({number})" for name, number in sorted(counts.items())])
