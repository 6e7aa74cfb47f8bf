"""Finds the acquired records in the batches of an answer.

A broker sends whole batches, and acquires ranges of offsets, which may be narrower:

    batches 0..9 (offset 4 was compacted away), 10 (a marker), 11..14        acquired 2..12
    records 2 3 5 6 7 8 9 11 12        gaps 4 and 10: acknowledged as such, so that nobody gets them again

A batch with a wrong checksum is damaged for every reader: its records are rejected. A batch with a codec that we cannot
read is released: another member may. An offset outside of the batches that came is released as well: what it holds is
not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k78_share_fetch import AcquiredRecords
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_complete_batches
from ixion.language.records.layout import Buffer
from ixion.language.records.record import Record

Range = tuple[int, int]  # first and last offset


class Found(NamedTuple):
    records: list[tuple[Record, int]]  # with delivery counts, by offset
    gaps: list[Range]
    damaged: list[Range]
    unread: list[Range]
    fault: KafkaError | None  # why something is damaged or unread


def read_acquired(data: Buffer, acquired: Sequence[AcquiredRecords]) -> Found:
    ranges = sorted([(each.first_offset, each.last_offset, each.delivery_count) for each in acquired])
    records: list[tuple[Record, int]] = []
    damaged: list[Range] = []
    unread: list[Range] = []
    known: list[Range] = []  # offsets that are dealt with, ascending
    fault: KafkaError | None = None
    first, end = 0, 0  # the offsets that the batches span
    try:
        for batch in iter_complete_batches(data):
            if end == 0:
                first = batch.base_offset
            end = max(end, batch.last_offset + 1)
            inside = [each for each in ranges if each[0] <= batch.last_offset and each[1] >= batch.base_offset]
            if not inside or batch.is_control:
                continue
            before = len(records)
            problem = take(batch, inside, records)
            extend(known, [(record.offset, record.offset) for record, _ in records[before:]])
            if problem is not None:
                fault = problem
                reached = records[-1][0].offset if len(records) > before else batch.base_offset - 1
                rest = clipped(inside, reached + 1, batch.last_offset)
                extend(known, rest)
                is_foreign = problem.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
                (unread if is_foreign else damaged).extend(rest)
    except KafkaError as broken:  # no batch can follow
        fault = broken
    gaps: list[Range] = []
    for at, last in missing(ranges, known):
        within = clipped([(at, last, 0)], first, end - 1)
        gaps += within
        unread += missing([(at, last, 0)], within)
    return Found(records, gaps, damaged, unread, fault)


def take(batch: BatchView, inside: list[tuple[int, int, int]], records: list[tuple[Record, int]]) -> KafkaError | None:
    """Append the batch's records that lie in the ranges; the fault that ends this early, if there is one."""
    if not batch.crc_is_valid():
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {batch.base_offset} has a wrong checksum")
    number = 0
    at, last, deliveries = inside[0]
    try:
        for record in batch:
            offset = record.offset
            while offset > last:
                number += 1
                if number == len(inside):
                    return None
                at, last, deliveries = inside[number]
            if offset >= at:
                records.append((record, deliveries))
    except KafkaError as problem:
        return problem
    return None


def clipped(ranges: Sequence[tuple[int, int, int]], first: int, last: int) -> list[Range]:
    return [(max(at, first), min(to, last)) for at, to, _ in ranges if max(at, first) <= min(to, last)]


def extend(known: list[Range], more: Sequence[Range]) -> None:
    """Append ascending ranges; neighbours are joined."""
    for first, last in more:
        if known and known[-1][1] + 1 >= first:
            known[-1] = (known[-1][0], max(known[-1][1], last))
        else:
            known.append((first, last))


def missing(ranges: Sequence[tuple[int, int, int]], known: Sequence[Range]) -> list[Range]:
    """What the ranges have and `known` has not; both ascend."""
    found: list[Range] = []
    number = 0
    for first, last, _ in ranges:
        at = first
        while number < len(known) and known[number][1] < at:
            number += 1
        look = number
        while at <= last and look < len(known) and known[look][0] <= last:
            if known[look][0] > at:
                found.append((at, known[look][0] - 1))
            at = max(at, known[look][1] + 1)
            look += 1
        if at <= last:
            found.append((at, last))
    return found
