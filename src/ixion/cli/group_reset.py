"""Works out where the partitions of a group would be read on after a reset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ixion.cli.command import UsageError
from ixion.clients.cluster import Cluster
from ixion.clients.group_offsets import fetch_offsets
from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import EARLIEST, LATEST
from ixion.clients.starts import Start, parse_time_ms, resolve_start
from ixion.model.errors import ErrorCode, KafkaError


class Target(NamedTuple):
    """A place to begin, or a distance from where the group is."""

    start: Start | None = None
    shift: int = 0


class Step(NamedTuple):
    place: TopicPartition
    before: int | None  # None: nothing was committed
    after: int


def choose_target(
    to_earliest: bool, to_latest: bool, to_offset: int | None, to_datetime: str | None, shift: int | None
) -> Target:
    chosen = []
    if to_earliest:
        chosen.append(Target(Start(EARLIEST)))
    if to_latest:
        chosen.append(Target(Start(LATEST)))
    if to_offset is not None:
        chosen.append(Target(Start(offset=to_offset)))
    if to_datetime is not None:
        try:
            chosen.append(Target(Start(parse_time_ms(to_datetime))))
        except ValueError:
            raise UsageError(f"--to-datetime wants 2026-05-01T12:00 or the like, not {to_datetime!r}") from None
    if shift is not None:
        chosen.append(Target(shift=shift))
    if len(chosen) != 1:
        raise UsageError("give one of --to-earliest, --to-latest, --to-offset, --to-datetime and --shift")
    return chosen[0]


def plan_reset(cluster: Cluster, group: str, topics: Sequence[str], target: Target) -> list[Step]:
    """Every partition that is to move, and where from and to; offsets that are gone become the nearest there is."""
    committed = fetch_offsets(cluster, group)
    places = choose_places(cluster, topics) if topics else sorted(committed)
    if not places:
        text = f"group {group!r} has committed nothing; say which --topic to reset"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    if target.start is not None:
        after = resolve_start(cluster, places, target.start)
    else:
        after = shifted(cluster, places, committed, target.shift)
    return [Step(place, committed.get(place), after[place]) for place in places]


def choose_places(cluster: Cluster, topics: Iterable[str]) -> list[TopicPartition]:
    """`orders` means all its partitions, `orders:0,2` two of them."""
    places = []
    for text in topics:
        topic, colon, listed = text.partition(":")
        count = len(cluster.topic(topic).partitions)
        if colon and not all(part.isascii() and part.isdigit() for part in listed.split(",")):
            raise UsageError(f"--topic wants TOPIC or TOPIC:0,2, not {text!r}")
        numbers = [int(part) for part in listed.split(",")] if colon else list(range(count))
        if max(numbers, default=0) >= count:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"topic {topic!r} has partitions 0 to {count - 1} only")
        places += [TopicPartition(topic, number) for number in numbers]
    return sorted(set(places))


def shifted(
    cluster: Cluster, places: list[TopicPartition], committed: dict[TopicPartition, int], by: int
) -> dict[TopicPartition, int]:
    first = resolve_start(cluster, places, Start(EARLIEST))
    end = resolve_start(cluster, places, Start(LATEST))
    for place in places:
        if place not in committed:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"nothing is committed for {place}, so it cannot be shifted")
    return {place: min(max(committed[place] + by, first[place]), end[place]) for place in places}
