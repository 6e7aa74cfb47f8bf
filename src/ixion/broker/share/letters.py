"""Dead letters as records (KIP-1191): headers that say which record it was and what became of it.

    __dlq.errors.topic            jobs
    __dlq.errors.partition        3
    __dlq.errors.offset           4711
    __dlq.errors.group            workers
    __dlq.errors.delivery.count   5
    __dlq.errors.message          the delivery count limit is reached

All are text. Key and value are null, unless the group wants a copy: then they are those of the record, whose own
headers come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ixion.broker.log.log import Log
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound, limit_of
from ixion.broker.share.runs import Run
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_complete_batches
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.record import Record

PREFIX: Final = "__dlq.errors."
REJECTED: Final = "rejected by a member"
TOO_OFTEN: Final = "the delivery count limit is reached"

PIECE: Final = 256 << 10


class Copies(NamedTuple):
    """Records by offset, of all that the log still has below `end`."""

    records: Mapping[int, Record]
    end: int


NO_COPIES: Final = Copies({}, 2**63 - 1)


def offsets_of(owed: list[Run]) -> Iterator[tuple[int, int]]:
    """Each offset with its delivery count."""
    for run in owed:
        for offset in range(run.first, run.last + 1):
            yield offset, run.deliveries


def read_copies(log: Log, owed: list[Run], most_bytes: int) -> Copies:
    """About so many bytes of the records, at least the first one. On a worker thread: batches may take long to
    inflate."""
    found: dict[int, Record] = {}
    size = 0
    for run in owed:
        first = max(run.first, log.log_start)
        if first > run.last:
            continue
        for view in batches(log, first):
            if view.base_offset > run.last:
                break
            for record in () if view.is_control else view.records():
                if run.first <= record.offset <= run.last:
                    size += len(record.key or b"") + len(record.value or b"") + sum(map(size_of, record.headers))
                    if found and size > most_bytes:
                        return Copies(found, int(record.offset))
                    found[int(record.offset)] = record
            if view.last_offset >= run.last:
                break
    return Copies(found, NO_COPIES.end)


def batches(log: Log, offset: int) -> Iterator[BatchView]:
    """Every committed batch from `offset` on."""
    while offset < limit_of(log, Bound.COMMITTED):
        data = read(log, offset, PIECE, Bound.COMMITTED).records
        if not data:
            return
        for view in iter_complete_batches(data):
            if view.last_offset >= offset:
                yield view
                offset = int(view.last_offset) + 1


def size_of(header: tuple[str, bytes | None]) -> int:
    return len(header[0]) + len(header[1] or b"")


def build(
    topic: str, partition: int, group: str, owed: list[Run], limit: int, copies: Copies, now_ms: int, most_bytes: int
) -> tuple[bytes, list[Run]]:
    """A batch of letters, of about so many bytes, and the records that they are for. Of runs whose delivery count has
    reached `limit` it is taken that this was the reason: only that is stored."""
    builder = BatchBuilder()
    written: list[Run] = []
    for offset, deliveries in offsets_of(owed):
        if offset >= copies.end:
            break
        copy = copies.records.get(offset)
        facts = (
            ("topic", topic),
            ("partition", str(partition)),
            ("offset", str(offset)),
            ("group", group),
            ("delivery.count", str(deliveries)),
            ("message", TOO_OFTEN if deliveries >= limit else REJECTED),
        )
        headers = [*(copy.headers if copy is not None else ()), *[(PREFIX + name, at.encode()) for name, at in facts]]
        if written and builder.size_in_bytes > most_bytes:
            break
        key, value = (None, None) if copy is None else (copy.key, copy.value)
        builder.append(
            None if key is None else bytes(key), None if value is None else bytes(value), headers, timestamp=now_ms
        )
        written.append(Run(offset, offset, 0, deliveries))
    return builder.build(), written
