"""Computes the offsets of a group after a reset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ixion.cli.command import UsageError
from ixion.clients.admin.group_offsets import list_group_offsets
from ixion.clients.admin.groups import describe_groups
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.share_groups import list_share_group_offsets
from ixion.clients.admin.starts import ends, resolve_start
from ixion.clients.admin.topics import describe_topics
from ixion.clients.metadata import TopicPartition
from ixion.clients.starts import EARLIEST, LATEST, Start, parse_time_ms
from ixion.language.model.errors import ErrorCode, KafkaError


class Target(NamedTuple):
    """A place to begin, or a distance from the committed offset."""

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
            raise UsageError(f"--to-datetime needs a time such as 2026-05-01T12:00, not {to_datetime!r}") from None
    if shift is not None:
        chosen.append(Target(shift=shift))
    if len(chosen) != 1:
        raise UsageError("give one of --to-earliest, --to-latest, --to-offset, --to-datetime and --shift")
    return chosen[0]


def check_empty(admin: AdminRunner, group: str) -> str:
    """Its kind. KafkaError (NON_EMPTY_GROUP) if it has members, which would keep their own positions. It need not
    exist; then it is a classic one."""
    described = admin.run(describe_groups, [group])
    fault = described.faults.get(group)
    if fault is not None:
        if fault.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise fault
        return "classic"
    found = described[group]
    if found.members:
        text = f"group {group!r} is {found.state.lower()} with {len(found.members)} members; stop them first"
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, text)
    return found.kind


def plan_reset(admin: AdminRunner, group: str, kind: str, topics: Sequence[str], target: Target) -> list[Step]:
    """Every partition to reset, with its old and new offset; a deleted offset becomes the nearest existing one."""
    committed = begin_offsets(admin, group) if kind == "share" else committed_offsets(admin, group)
    places = choose_places(admin, topics) if topics else sorted(committed)
    if not places:
        text = f"group {group!r} has committed nothing; say which --topic to reset"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    if target.start is not None:
        after = admin.run(resolve_start, places, target.start)
    else:
        after = shifted(admin, places, committed, target.shift)
    return [Step(place, committed.get(place), after[place]) for place in places]


def committed_offsets(admin: AdminRunner, group: str) -> dict[TopicPartition, int]:
    stored = admin.run(list_group_offsets, [group])[group]
    return {place: each.offset for place, each in stored.items()}


def begin_offsets(admin: AdminRunner, group: str) -> dict[TopicPartition, int]:
    """Of a share group, which has no commits."""
    stored = admin.run(list_share_group_offsets, [group])[group]
    return {place: each.start_offset for place, each in stored.items() if each.start_offset >= 0}


def choose_places(admin: AdminRunner, topics: Iterable[str]) -> list[TopicPartition]:
    """`orders` means all its partitions, `orders:0,2` two of them."""
    places = []
    for text in topics:
        topic, colon, listed = text.partition(":")
        count = len(admin.run(describe_topics, [topic])[topic].partitions)
        if colon and not all(part.isascii() and part.isdigit() for part in listed.split(",")):
            raise UsageError(f"--topic needs TOPIC or TOPIC:0,2, not {text!r}")
        numbers = [int(part) for part in listed.split(",")] if colon else list(range(count))
        if max(numbers, default=0) >= count:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"topic {topic!r} has partitions 0 to {count - 1} only")
        places += [TopicPartition(topic, number) for number in numbers]
    return sorted(set(places))


def shifted(
    admin: AdminRunner, places: list[TopicPartition], committed: dict[TopicPartition, int], by: int
) -> dict[TopicPartition, int]:
    first, end = admin.run(ends, places)
    for place in places:
        if place not in committed:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"nothing is committed for {place}, so it cannot be shifted")
    return {place: min(max(committed[place] + by, first[place]), end[place]) for place in places}
