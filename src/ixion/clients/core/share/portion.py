"""Acknowledgements of one partition that travel in one request.

A broker carries out all acknowledgements of a partition in a request, or none. One record whose lock has ended would
take the others with it. So a refused portion is halved, and each half is sent again, down to the record that is to
blame:

    accept 1 2 3 4      refused      accept 1 2: done      accept 3 4: refused      3: refused      4: done
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, final

from ixion.clients.core.share.acknowledgement import RENEW, Acknowledgement
from ixion.clients.metadata import TopicPartition

if TYPE_CHECKING:
    from ixion.clients.core.share.acquisition import Acquisition


Key = tuple[bytes, int]  # topic id and partition, as answers name them


class Item(NamedTuple):
    """One kind of acknowledgement for a range of offsets of one acquisition."""

    first: int
    last: int
    kind: int
    delay_ms: int = 0
    result: Acknowledgement | None = None  # of a single record
    is_ours: bool = False  # no wish of the caller: a gap, an automatic renewal

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@final
class Entry:
    """An item, and where its records are held."""

    def __init__(self, item: Item, acquisition: Acquisition) -> None:
        self.item = item
        self.acquisition = acquisition

    @property
    def what(self) -> str:
        return what(self.acquisition.place, self.item.first, self.item.last)

    @property
    def is_narrowed(self) -> bool:
        """Whether a refusal must be narrowed down: it is a wish of the caller, or the lock of a held record."""
        return not self.item.is_ours or self.item.kind == RENEW


class WireRange(NamedTuple):
    """As an AcknowledgementBatch has it: one type for the whole range."""

    first: int
    last: int
    kind: int
    delay_ms: int


class Portion:
    def __init__(self, place: TopicPartition, topic_id: bytes, entries: Sequence[Entry]) -> None:
        self.place = place
        self.topic_id = topic_id
        self.entries = sorted(entries, key=lambda entry: entry.item.first)

    @property
    def key(self) -> Key:
        return self.topic_id, self.place.partition

    @property
    def count(self) -> int:
        """How many offsets it is about."""
        return sum([entry.item.size for entry in self.entries])

    def ranges(self) -> list[WireRange]:
        """Neighbours of one kind are joined."""
        found: list[WireRange] = []
        for entry in self.entries:
            item = entry.item
            before = found[-1] if found else None
            if (
                before is not None
                and before.last + 1 == item.first
                and before.kind == item.kind
                and before.delay_ms == item.delay_ms
            ):
                found[-1] = WireRange(before.first, item.last, item.kind, item.delay_ms)
            else:
                found.append(WireRange(item.first, item.last, item.kind, item.delay_ms))
        return found

    def halves(self) -> tuple[Portion, Portion]:
        """By number of offsets; a range is cut in two if it must be."""
        left = self.count // 2
        first: list[Entry] = []
        second: list[Entry] = []
        for entry in self.entries:
            item = entry.item
            size = item.size
            if left >= size:
                first.append(entry)
            elif left <= 0:
                second.append(entry)
            else:
                first.append(Entry(item._replace(last=item.first + left - 1), entry.acquisition))
                second.append(Entry(item._replace(first=item.first + left), entry.acquisition))
            left -= size
        return Portion(self.place, self.topic_id, first), Portion(self.place, self.topic_id, second)


def what(place: TopicPartition, first: int, last: int) -> str:
    """Names records in errors."""
    if first == last:
        return f"the record at offset {first} of {place}"
    return f"the records at offsets {first} to {last} of {place}"
