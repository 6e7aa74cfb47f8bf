"""Cuts ranges of offsets into tasks: at least `min_pieces`, none longer than `max_offsets`.

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
