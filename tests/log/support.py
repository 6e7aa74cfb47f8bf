"""Batches, a clock that stands still, and a log in a folder that can be opened again.

Use it in every test of a log. For a disk that fails, add `faults`; for power failures, `journal`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ixion.broker.log.config import LogConfig
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.files import Files
from ixion.broker.log.log import Log
from ixion.broker.log.log_loader import open_log
from ixion.broker.log.producer_state import ProducerState
from ixion.broker.log.reader import read
from ixion.broker.log.timestamps import TimedOffset, search_by_timestamp, search_max_timestamp
from ixion.broker.log.view import Bound
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.language.records.control import transaction_marker
from ixion.timer.turns import Steps

T = TypeVar("T")
NOW = 1_700_000_000_000


class QuickFiles(Files):
    """A disk that never waits: no test pulls the real plug, those that play it keep their own books (`journal`)."""

    def sync(self, fd: int) -> None:
        pass

    def sync_dir(self, path: str) -> None:
        pass


@dataclass(slots=True)
class Clock:
    now_ms: int = NOW

    def __call__(self) -> int:
        return self.now_ms


def batch(
    *values: bytes | None,
    key: bytes | None = b"k",
    keys: list[bytes] | None = None,
    timestamp: int = NOW,
    producer: tuple[int, int, int] | None = None,
    transactional: bool = False,
    codec: Codec = Codec.NONE,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """One batch. `producer` is (id, epoch, first sequence)."""
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    builder = BatchBuilder(
        codec=codec,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    for number, value in enumerate(values):
        builder.append(keys[number] if keys else key, value, timestamp=timestamp)
    return builder.build()


def marker(producer: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0, timestamp: int = NOW) -> bytes:
    return transaction_marker(
        commit=commit,
        producer_id=producer,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=timestamp,
    )


@dataclass(slots=True)
class Box:
    """A partition folder, and the log that is open on it."""

    path: Path
    config: LogConfig = field(default_factory=LogConfig)
    files: Files = field(default_factory=QuickFiles)
    clock: Clock = field(default_factory=Clock)
    directory: DirectoryState = field(init=False)

    def __post_init__(self) -> None:
        self.directory = DirectoryState(str(self.path))

    @property
    def folder(self) -> Path:
        return self.path / "orders-0"

    def open(
        self,
        *,
        clean: bool = False,
        recovery_point: int = 0,
        log_start: int = 0,
        high_watermark: int = -1,
        compacted_to: int = 0,
    ) -> Log:
        return open_log(
            directory=self.directory,
            folder=str(self.folder),
            topic="orders",
            partition=0,
            config=self.config,
            files=self.files,
            clock_ms=self.clock,
            clean=clean,
            recovery_point=recovery_point,
            log_start=log_start,
            high_watermark=high_watermark,
            compacted_to=compacted_to,
        )


def stored(log: Log, start: int | None = None, bound: Bound = Bound.END) -> list[tuple[int, bytes]]:
    """(offset, value) of every data record from `start` on, read as a client would, checksums verified."""
    found: list[tuple[int, bytes]] = []
    offset = log.log_start if start is None else start
    first = offset
    while True:
        data = read(log, offset, 1000, bound)
        if not data.records:
            return found
        for view in iter_batches(data.records):
            assert view.crc_is_valid()
            if not view.is_control:
                found += [
                    (int(record.offset), record.value or b"") for record in view.records() if record.offset >= first
                ]
            offset = int(view.last_offset) + 1


def find_by_timestamp(log: Log, timestamp: int) -> TimedOffset | None:
    return finish(search_by_timestamp(log, timestamp, Bound.END))


def find_max_timestamp(log: Log) -> TimedOffset | None:
    return finish(search_max_timestamp(log, Bound.END))


def finish(steps: Steps[T]) -> T:
    """Runs the steps one after the other."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


def open_transaction(producers: ProducerState) -> int:
    """The first offset of the earliest open transaction; -1 if none is open."""
    return min(
        (entry.txn_first_offset for entry in producers.producers.values() if entry.txn_first_offset >= 0), default=-1
    )
