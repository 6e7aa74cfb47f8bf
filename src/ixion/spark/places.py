"""From options to ranges of offsets: which partitions to read, and where to begin and end in each."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ixion.clients.admin.offsets import EARLIEST, LATEST
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import find_topic, offsets_at
from ixion.clients.admin.topics import list_topics
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.spark.options import EARLIEST_OFFSET, LATEST_OFFSET, Edge, Options

CONNECT_MS: Final = 10_000.0  # for one address; then the next one is tried

Offsets = dict[TopicPartition, int]


def connect(options: Options) -> AdminRunner:
    timeout_ms = options.timeout_s * 1000
    return AdminRunner(
        options.bootstrap,
        client_id=options.client_id,
        default_api_timeout_ms=timeout_ms,
        request_timeout_ms=timeout_ms,
        socket_connection_setup_timeout_ms=min(timeout_ms, CONNECT_MS),
        **options.security,
    )


def find_partitions(admin: AdminRunner, options: Options) -> list[TopicPartition]:
    """KafkaError for an unknown topic. A pattern may match none."""
    wanted = options.subscription
    if wanted.partitions:
        return list(wanted.partitions)
    topics: Collection[str] = wanted.topics
    if wanted.pattern:
        topics = [topic.name for topic in admin.run(list_topics) if re.fullmatch(wanted.pattern, topic.name)]
    return [TopicPartition(name, each.number) for name in topics for each in admin.run(find_topic, name).partitions]


def resolve(
    admin: AdminRunner, places: list[TopicPartition], edge: Edge, options: Options, *, is_start: bool
) -> Offsets:
    """The offsets that an edge means now."""
    if edge.offsets is not None:
        check_complete(edge.offsets, places, "startingOffsets" if is_start else "endingOffsets")
        found = dict(edge.offsets)
        for word, time_ms in ((EARLIEST_OFFSET, EARLIEST), (LATEST_OFFSET, LATEST)):
            at_end = [place for place, offset in found.items() if offset == word]
            found.update(ends(admin, at_end, time_ms, options))
        return found
    if edge.times is None:
        if edge.time_ms in (EARLIEST, LATEST):
            return ends(admin, places, edge.time_ms, options)
        times = dict.fromkeys(places, edge.time_ms)
    else:
        times = edge.times
        name = "startingOffsetsByTimestamp" if is_start else "endingOffsetsByTimestamp"
        check_complete(times, places, name)
    return at_times(admin, times, options, is_start=is_start)


def at_times(admin: AdminRunner, times: Offsets, options: Options, *, is_start: bool) -> Offsets:
    found: Offsets = {}
    for time_ms in sorted(set(times.values())):
        places = [place for place, each in times.items() if each == time_ms]
        found.update(ends(admin, places, time_ms, options))
    late = [place for place, offset in found.items() if offset < 0]
    if late and is_start and not options.missing_time_is_latest:
        text = (
            f"{late[0]} has no record of {times[late[0]]} or later; startingOffsetsByTimestampStrategy=latest allows it"
        )
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
    found.update(ends(admin, late, LATEST, options))
    return found


def ends(admin: AdminRunner, places: list[TopicPartition], time_ms: int, options: Options) -> Offsets:
    return admin.run(offsets_at, places, time_ms, options.read_committed) if places else {}


def check_complete(given: Offsets, places: list[TopicPartition], name: str) -> None:
    missing, foreign = set(places) - given.keys(), given.keys() - set(places)
    if missing or foreign:
        wrong = f"leaves out {min(missing)}" if missing else f"names {min(foreign)}, which is not read"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} {wrong}; it must name each partition that is read")


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """As Spark stores it in a checkpoint: topic -> partition -> offset."""
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(number)] = offset
    return found


def from_json(stored: dict[str, dict[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in stored.items()
        for number, offset in numbers.items()
    }
