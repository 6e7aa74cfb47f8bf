"""Where to begin reading, in words: an end, an offset, so many before the end, or a time.

earliest, beginning, start  the first record there is
latest, end                 only what comes from now on
stored                      where the group has committed (with a group only)
120                         offset 120 of every partition (the nearest there is, if that one is gone or not there yet)
-10                         ten before the end of every partition
@2026-05-01T12:00           the first record of that time or later; local time unless it ends in Z or +02:00; without
                            the @, too
@1767225600000              the same, in milliseconds since 1970
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import EARLIEST, LATEST, list_offsets

LARGEST_MS: Final = (1 << 63) - 1  # as a timestamp is stored; no record is that late


class Start(NamedTuple):
    """One of four: a time (or one of the two ends), an offset, a distance from the end, or what the group committed."""

    time_ms: int = EARLIEST
    offset: int | None = None
    before_end: int | None = None
    stored: bool = False


def parse_start(text: str) -> Start:
    """ValueError, saying what is possible, if it is none of these."""
    word = text.strip().lower()
    if word in ("earliest", "beginning", "start"):
        return Start(EARLIEST)
    if word in ("latest", "end"):
        return Start(LATEST)
    if word == "stored":
        return Start(stored=True)
    if is_number(word.removeprefix("-")):
        return Start(before_end=int(word[1:])) if word.startswith("-") else Start(offset=int(word))
    time = text.strip().removeprefix("@")
    return Start(min(int(time), LARGEST_MS) if is_number(time) else parse_time_ms(time))


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def parse_time_ms(text: str) -> int:
    from datetime import datetime  # 2 ms that most starts do without

    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError):
        choices = "earliest, latest, stored, an offset, -N, a time such as 2026-05-01T12:00 or @MILLISECONDS"
        raise ValueError(f"{text!r} is no place to begin; possible are {choices}") from None


def resolve_start(
    cluster: Cluster, partitions: Iterable[TopicPartition], start: Start, *, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """The offsets that it means today."""
    partitions = list(partitions)
    first = list_offsets(cluster, partitions, EARLIEST)
    end = list_offsets(cluster, partitions, LATEST, read_committed=read_committed)
    if start.offset is not None:
        return {place: min(max(start.offset, first[place]), end[place]) for place in partitions}
    if start.before_end is not None:
        return {place: max(end[place] - start.before_end, first[place]) for place in partitions}
    if start.time_ms == EARLIEST:
        return first
    if start.time_ms == LATEST:
        return end
    found = list_offsets(cluster, partitions, start.time_ms, read_committed=read_committed)
    return {place: end[place] if found[place] < 0 else found[place] for place in partitions}
