"""Loads the state of a coordinator from its internal topic, and skips what it cannot read.

    a record that cannot be read, or that the rules refuse     logged, counted, skipped
    a partition whose log cannot be read                       logged by name, failed, read again after a pause
    everything else                                            is served

No exception leaves the loader: one bad record must not keep a broker from starting. (Kafka skips nothing: there such a
record fails its partition until an operator repairs the log.)

Loading runs in turns of the event loop, shared by all partitions (`timer.lane`), so a broker that becomes leader of
fifty of them at once continues to serve. A small partition is loaded when `load` returns. Everything runs on the loop.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from functools import partial
from typing import Final, Protocol

from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.language.model.errors import KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.record import Record
from ixion.timer.lane import Lane
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1_000  # after the first failure; doubled with each further one
MAX_RETRY_MS: Final = 60_000
STEP: Final = 16  # records or groups; some 100 µs
LOGGED: Final = 10  # skipped records that one load logs one by one; the others are counted


class Loadable(Protocol):
    """A partition to be loaded, and how its coordinator handles the records."""

    @property
    def partition(self) -> int: ...

    def is_wanted(self) -> bool:
        """False once this broker resigned or was elected again: loading ends, and nothing more is called."""

    def begin(self) -> None:
        """Forget what an earlier attempt has read."""

    def control(self, batch: BatchView, /) -> None:
        """Handle a control batch. If this raises, the loader skips the batch."""

    def replay(self, batch: BatchView, record: Record, /) -> Steps[None] | None:
        """Handle a record, in the order of the log. If it raises it changes nothing; the loader skips the record. What
        takes long is returned as steps."""

    def finish(self) -> Steps[None]:
        """Everything is loaded: begin to serve."""

    def fail(self) -> None:
        """The log cannot be read: refuse requests. The loader tries again."""


class Loader:
    def __init__(self, log: CoordinatorLog, timer: Timer) -> None:
        self._log = log
        self._timer = timer
        self._lane = Lane(partial(timer.call_later, 0), fair=True)
        self.skipped = 0  # records, since the start
        self.failed: dict[int, str] = {}  # partitions that cannot be loaded, and why

    def load(self, target: Loadable, attempt: int = 0) -> None:
        if not target.is_wanted():
            return
        self.failed.pop(target.partition, None)
        target.begin()
        load = LoadAttempt(target, attempt)
        self._lane.run(self._steps(load), partial(self._ended, load), target.is_wanted)

    def forget(self, partition: int) -> None:
        """Stop retrying a partition that is now led elsewhere."""
        self.failed.pop(partition, None)

    def skip(self, partition: int, what: str, error: Exception) -> None:
        """Count something that cannot be served, and log it."""
        self.skipped += 1
        logger.warning("%s-%d: skipped %s: %r", self._log.name, partition, what, error)

    def _steps(self, load: LoadAttempt) -> Steps[None]:
        target = load.target
        for batch in self._log.read(target.partition):
            if batch.is_control:
                try:
                    target.control(batch)
                except Exception as error:
                    self._skip(load, int(batch.base_offset), error)
            else:
                yield from self._records(load, batch)
        if load.skipped > LOGGED:
            logger.warning("%s-%d: %d records were skipped", self._log.name, target.partition, load.skipped)
        yield from target.finish()

    def _records(self, load: LoadAttempt, batch: BatchView) -> Steps[None]:
        replay = load.target.replay
        records = batch.records()
        offset = int(batch.base_offset)
        while True:
            try:
                record = next(records, None)
                if record is None:
                    return
                offset = int(record.offset)
                steps = replay(batch, record)
                if steps is not None:
                    yield from steps
            except Exception as error:
                self._skip(load, offset, error)
            load.records += 1
            if load.records % STEP == 0:
                yield

    def _skip(self, load: LoadAttempt, offset: int, error: Exception) -> None:
        load.skipped += 1
        if load.skipped <= LOGGED:
            self.skip(load.target.partition, f"the record at offset {offset}", error)
        else:
            self.skipped += 1

    def _ended(self, load: LoadAttempt, _: None, error: Exception | None) -> None:
        if error is None:
            return
        target, name = load.target, self._log.name
        pause_ms = min(RETRY_MS << min(load.attempt, 16), MAX_RETRY_MS)
        logger.error(
            "%s-%d cannot be loaded, so its groups or transactions are not served; retrying in %d ms: %s",
            *(name, target.partition, pause_ms, error),
            exc_info=None if isinstance(error, KafkaError) else error,  # such as a directory that is offline
        )
        self.failed[target.partition] = repr(error)
        target.fail()
        self._timer.call_later(pause_ms, self.load, target, load.attempt + 1)


class LoadAttempt:
    __slots__ = ("attempt", "records", "skipped", "target")

    def __init__(self, target: Loadable, attempt: int) -> None:
        self.target: Final = target
        self.attempt: Final = attempt
        self.records = 0
        self.skipped = 0
