"""What a share partition keeps in memory."""

from __future__ import annotations

import tracemalloc

from ixion.broker.share.acknowledgement import RELEASE, Acknowledgement
from ixion.broker.share.acquiring import Acquiring, Found
from ixion.broker.share.partition import SharePartition
from ixion.broker.share.states import DEFERRED
from ixion.broker.share.terms import Terms

COUNT = 4_000
TERMS = Terms(max_locks=COUNT, lock_ms=30_000)


def acquired(count: int) -> SharePartition:
    partition = SharePartition(0)
    Acquiring(partition, "a", 0, TERMS, most=count).take([Found(0, count - 1)], 0)
    return partition


def test_an_offset_that_is_tracked_singly_takes_24_bytes() -> None:
    partition = acquired(COUNT)
    types = tuple(1 + at % 2 for at in range(COUNT))  # accepted and released in turn: no two are alike
    changes = partition.acknowledge("a", [Acknowledgement(0, COUNT - 1, types)], 0, TERMS)
    partition.settle(changes, True, 0)
    assert len(partition.runs) == COUNT - 1
    assert partition.runs.size_in_bytes / len(partition.runs) <= 24.5, "the columns have a sixteenth in reserve"


def test_a_record_deferred_alone_takes_8_bytes_more() -> None:
    partition = acquired(COUNT)
    for at in range(0, COUNT, 2):
        changes = partition.acknowledge("a", [Acknowledgement(at, at, (RELEASE,), 60_000 + at)], at, TERMS)
        partition.settle(changes, True, at)
    deferred = COUNT // 2
    assert partition.runs.tallies[DEFERRED] == deferred
    assert partition.runs.size_in_bytes / COUNT <= 25
    assert partition.timetable.size_in_bytes / deferred <= 16, "few buckets, and 8 bytes for each"


def test_an_idle_share_partition_takes_less_than_4_kb() -> None:
    tracemalloc.start()
    try:
        made = [SharePartition(at) for at in range(100)]
        assert tracemalloc.get_traced_memory()[0] / len(made) <= 4_000
    finally:
        tracemalloc.stop()
