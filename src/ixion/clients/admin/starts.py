"""Resolves starts given in words (`ixion.clients.starts`) to offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ixion.clients.admin.offsets import EARLIEST, LATEST, list_offsets
from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.routes import leader_in, metadata
from ixion.clients.admin.topics import describe_topics
from ixion.clients.metadata import Topic, TopicPartition
from ixion.clients.starts import Start, between
from ixion.language.model.errors import ErrorCode, KafkaError

Offsets = dict[TopicPartition, int]


def find_topic(call: Call, name: str, *, create: bool = False) -> Plan[Topic]:
    """One topic; with `create`, the broker may create a missing topic with its defaults."""
    if not create:
        return (yield from describe_topics(call, [name]))[name]
    while True:
        found = yield from metadata(call, [name], create=True)
        if name in found.topics:
            return found.topics[name]
        code = found.faults.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        call.reason = KafkaError(code, f"topic {name!r}: {code.explanation}")
        if not code.retriable:
            raise call.reason
        yield call.pause_s()


def choose_partitions(call: Call, topic: str, wanted: Sequence[int] = ()) -> Plan[list[TopicPartition]]:
    """The named partitions of a topic, which must exist and have a leader, or all."""
    found = yield from find_topic(call, topic)
    if not wanted:
        return [TopicPartition(topic, each.number) for each in found.partitions]
    places = [TopicPartition(topic, number) for number in dict.fromkeys(wanted)]
    for place in places:
        leader_in(found, place)
    return places


def ends(
    call: Call, partitions: Iterable[TopicPartition], *, read_committed: bool = False
) -> Plan[tuple[Offsets, Offsets]]:
    """The first offset of each partition, and the one that the next record gets."""
    places = list(partitions)
    first = yield from offsets_at(call, places, EARLIEST, read_committed)
    end = yield from offsets_at(call, places, LATEST, read_committed)
    return first, end


def offsets_at(call: Call, places: list[TopicPartition], time_ms: int, read_committed: bool) -> Plan[Offsets]:
    found = yield from list_offsets(call, dict.fromkeys(places, time_ms), read_committed=read_committed)
    return {place: each.offset for place, each in found.check().items()}


def resolve_start(
    call: Call, partitions: Iterable[TopicPartition], start: Start, *, read_committed: bool = False
) -> Plan[Offsets]:
    """The offsets that a start means now."""
    places = list(partitions)
    first, end = yield from ends(call, places, read_committed=read_committed)
    at_time: Offsets = {}
    if start.is_time:
        at_time = yield from offsets_at(call, places, start.time_ms, read_committed)
    return {place: between(start, first[place], end[place], at_time.get(place, -1)) for place in places}
