"""Reads ranges of offsets as columns, and ends when all of them are read.

    for place, columns in read_ranges("127.0.0.1:9092", {TopicPartition("orders", 0): (0, 1000)}):
        print(place, columns.offsets[0], len(columns))

A range goes from its first offset to before its second. Offsets in it may have no record: transaction markers, aborted
records, records removed by compaction or retention. A partition whose range is read is no longer fetched. The caller
may stop at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Unpack

from ixion.clients.faults import TimedOutError
from ixion.clients.metadata import TopicPartition
from ixion.clients.reader import PARTITION_BYTES, Reader, ReaderOptions
from ixion.language.records.columns import Columns

POLL_S = 0.5

Range = tuple[int, int]


def read_ranges(
    bootstrap: str,
    ranges: Mapping[TopicPartition, Range],
    *,
    read_committed: bool = False,
    partition_bytes: int = PARTITION_BYTES,
    patience_s: float = 60.0,
    on_missed: Callable[[int], None] | None = None,
    **options: Unpack[ReaderOptions],
) -> Iterator[tuple[TopicPartition, Columns]]:
    """KafkaError if nothing can be read for `patience_s`. `on_missed` is called with the number of offsets that
    retention deleted before they were read."""
    ends = {place: end for place, (start, end) in ranges.items() if start < end}
    if not ends:
        return
    starts = {place: ranges[place][0] for place in ends}
    missed = 0
    with Reader(bootstrap, starts, read_committed=read_committed, partition_bytes=partition_bytes, **options) as reader:
        progress_s = time.monotonic()
        while ends:
            arrived = reader.poll(POLL_S)
            for fetched in arrived:
                place = fetched.partition
                for columns in fetched.columns(ends[place]):
                    yield place, columns
                progress_s = time.monotonic()
            if reader.missed > missed:
                missed, more = reader.missed, reader.missed - missed
                if on_missed is not None:
                    on_missed(more)
            for place in [place for place, end in ends.items() if reader.offsets[place] >= end]:
                reader.drop(place)
                del ends[place]
            if ends and time.monotonic() - progress_s > patience_s:
                raise reader.trouble or TimedOutError(
                    f"{', '.join(map(str, ends))}: no record before the end of the range within {patience_s:g} s"
                )
