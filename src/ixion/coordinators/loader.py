"""Reads the state of a coordinator back from its internal topic, whatever is in it.

    a record that cannot be read, or that the rules refuse     logged, counted, skipped
    a partition whose log cannot be read                       logged by name, failed, read again after a pause
    everything else                                            is served

No exception leaves the loader: one bad record must not keep a broker from starting. (Kafka skips nothing: there such a
record fails its partition until an operator repairs the log.)

Loading is done in turns of the event loop, shared by all partitions (`timer.lane`), so that a broker that comes to lead
fifty of them at once goes on serving. A small partition is there when `load` returns. Everything belongs to the loop.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final, Protocol

from ixion.model.errors import KafkaError
from ixion.records.batch import BatchView
from ixion.records.record import Record
from ixion.replica.coordinator_log import CoordinatorLog
from ixion.timer.lane import Lane
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1_000  # after the first failure; doubled with each further one
MAX_RETRY_MS: Final = 60_000
STEP: Final = 16  # records or groups; some 100 µs
LOGGED: Final = 10  # skipped records that one load logs one by one; the others are counted


class Loadable(Protocol):
    """A partition that is to be loaded, and what its coordinator does with what is read."""

    @property
    def partition(self) -> int: ...

    def is_wanted(self) -> bool:
        """False once it was resigned or elected anew: loading it ends, and nothing more is called."""

    def begin(self) -> None:
        """Forget what an earlier attempt has read."""

    def control(self, batch: BatchView, /) -> None:
        """A control batch. What this raises makes the loader skip it."""

    def replay(self, batch: BatchView, record: Record, /) -> None:
        """A record, in the order of the log. What this raises makes the loader skip it; nothing may be changed then."""

    def finish(self) -> Steps[None]:
        """All is read: serve it."""

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
        """The partition is led elsewhere from now on."""
        self.failed.pop(partition, None)

    def skip(self, partition: int, what: str, error: Exception) -> None:
        """Count something that cannot be served, and log it."""
        self.skipped += 1
        logger.warning("%s-%d: %s is skipped: %r", self._log.name, partition, what, error)

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
                replay(batch, record)
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
            "%s-%d cannot be loaded, and what it coordinates is not served; the next attempt is in %d ms: %s",
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
