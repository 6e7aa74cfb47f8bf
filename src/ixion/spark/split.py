"""Cuts ranges of offsets: into tasks, at least `min_pieces`, none longer than `max_offsets`; and to a batch.

Tasks are divided by size, as in the connector: 900 and 100 offsets for at least 4 tasks become 4 of 225 and 1 of 100. A
range gets at least one task, so there may be more tasks than asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from ixion.clients.consumer.ranges import Range
from ixion.clients.metadata import TopicPartition

Piece = tuple[TopicPartition, Range]


def split(ranges: Mapping[TopicPartition, Range], min_pieces: int = 0, max_offsets: int = 0) -> list[Piece]:
    """0 sets no limit. Empty ranges get no task."""
    full = {place: span for place, span in sorted(ranges.items()) if span[0] < span[1]}
    total = sum(end - start for start, end in full.values())
    pieces: list[Piece] = []
    for place, (start, end) in full.items():
        size = end - start
        count = -(-size // max_offsets) if max_offsets else 1
        if min_pieces > len(full):
            count = max(count, round(min_pieces * size / total))
        count = min(max(count, 1), size)
        edges = [start + size * number // count for number in range(count + 1)]
        pieces += [(place, (left, right)) for left, right in pairwise(edges)]
    return pieces


def limited(ranges: Mapping[TopicPartition, Range], most: int) -> dict[TopicPartition, int]:
    """Where each range ends in a batch of at most `most` offsets. Each gets its share; what rounding leaves goes to
    those that lost most by it: of 900 and 100 offsets, a batch of 15 takes 14 and 1 (13.5 and 1.5)."""
    sizes = {place: max(0, end - start) for place, (start, end) in ranges.items()}
    total = sum(sizes.values())
    if total <= most:
        return {place: end for place, (_, end) in ranges.items()}
    taken = {place: size * most // total for place, size in sizes.items()}
    by_loss = sorted(sizes, key=lambda place: (-(sizes[place] * most % total), place))
    for place in by_loss[: most - sum(taken.values())]:
        taken[place] += 1
    # A range that ends before it starts lost records: its end is kept, and reading it says so.
    return {place: start + taken[place] if start <= end else end for place, (start, end) in ranges.items()}
