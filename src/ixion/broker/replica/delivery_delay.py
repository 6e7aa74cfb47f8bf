"""Delayed delivery, mode `fixed`: consumers see each record of a topic delivery.delay.ms after it was appended.

No record is copied, and there is no state per record. The records of a partition become due in the order of the log, so
one offset is enough: `Log.visible_end`, a barrier beside the high watermark and the last stable offset. Consumers read
up to the smallest of the three, and compaction and retention go no further (`log.view`). Each replica keeps its own
barrier by its own clock: consumers may read from followers, too, and a follower that becomes the leader has one.

    appended at      1000   1200   1200   1900          delay 500 ms, now 1700
    offset             10     11     12     13          visible_end 13: offsets 11 and 12 have just become due
                                                        next look at 1900 + 500

**When is a record due?** At the timestamp of its append plus the delay. A topic in this mode stamps records with the
broker's clock, whatever message.timestamp.type says. The time index finds the first record that is not due, by one
search of a few kilobytes for a log of any length. Older records count from the timestamps of their producers.

**One timer task per partition**, at the time when its next record becomes due. The timer runs on monotonic time and due
times are wall-clock times, so the task checks the wall clock again and never shows a record early. If the wall clock
jumps, every partition is checked again (`_watch_clock`). A clock that steps back hides no visible record; only a longer
delay does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from ixion.broker.log.checked_batch import IN_PLACE_LIMITS
from ixion.broker.log.log import UNKNOWN, Log
from ixion.broker.log.timestamps import TimedOffset, search_by_timestamp, search_thoroughly
from ixion.broker.log.view import Bound
from ixion.broker.replica.fair_workers import FairWorkers, Work
from ixion.broker.replica.partition import Partition
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.faults import LongWorkError
from ixion.timer.lane import Lane
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

PAUSE_MS: Final = 2  # between two searches of a partition, so that a busy one does not search for every record
CLOCK_CHECK_MS: Final = 1_000
JUMP_MS: Final = 500  # a larger drift between the wall clock and the timer since the last check counts as a jump
RETRY_MS: Final = 1_000  # after a search that failed


class _Barrier:
    __slots__ = ("delay_ms", "looking", "partition", "task")

    def __init__(self, partition: Partition, delay_ms: int) -> None:
        self.partition = partition
        self.delay_ms = delay_ms
        self.task: TimerTask | None = None
        self.looking = False


class DeliveryDelays:
    """The barriers of this broker. Loop thread only.

    `moved` is called for a partition with more visible records; `monotonic_ms` is the clock of the timer.
    """

    def __init__(
        self,
        timer: Timer,
        lane: Lane,
        clock_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
        moved: Callable[[Partition], None],
        workers: FairWorkers,
    ) -> None:
        self._timer = timer
        self._lane = lane
        self._clock_ms = clock_ms
        self._monotonic_ms = monotonic_ms
        self._moved = moved
        self._workers = workers
        self._barriers: dict[TopicPartition, _Barrier] = {}
        self._skew_ms = 0
        self._clock_task: TimerTask | None = None
        self.clock_jumps = 0

    def follow(self, partition: Partition) -> None:
        """Call this when this broker gets a role in the partition, and when its settings or its log change."""
        delay_ms = partition.log.config.delivery_delay_ms
        known = self._barriers.get(partition.key)
        if delay_ms == 0:
            self.forget(partition.key)
            return
        if known is None or known.partition is not partition or known.delay_ms != delay_ms:
            self.forget(partition.key)
            partition.log.visible_end = UNKNOWN  # until the first search: a longer delay may hide visible records
            known = self._barriers[partition.key] = _Barrier(partition, delay_ms)
            self._watch_clock()
        self._look(known)

    def forget(self, key: TopicPartition) -> None:
        barrier = self._barriers.pop(key, None)
        if barrier is not None and barrier.task is not None:
            barrier.task.cancel()
            barrier.task = None

    def appended(self, partition: Partition) -> None:
        """Call this after an append: its record is the next to become due if none was waiting.

        The records of a follower may be old ones.
        """
        barrier = self._barriers.get(partition.key)
        if barrier is not None and barrier.task is None and not barrier.looking:
            self._wake_in(barrier, barrier.delay_ms if partition.leads else PAUSE_MS)

    def pending(self) -> dict[TopicPartition, int]:
        """Offsets of each delayed partition led here that consumers cannot see yet."""
        logs = {key: barrier.partition.log for key, barrier in self._barriers.items() if barrier.partition.leads}
        return {key: max(0, log.end_offset - max(log.visible_end, log.log_start)) for key, log in logs.items()}

    # Internals.

    def _look(self, barrier: _Barrier) -> None:
        if barrier.looking:
            return
        barrier.looking = True
        if barrier.task is not None:
            barrier.task.cancel()
            barrier.task = None
        log = barrier.partition.log
        now_ms = self._clock_ms()
        end = log.end_offset  # records that are appended during the search are not due

        time = now_ms - barrier.delay_ms + 1

        def found(first: TimedOffset | None, error: Exception | None, _used_ns: int = 0) -> None:
            if isinstance(error, LongWorkError):
                search = partial(search_thoroughly, search_by_timestamp(log, time, Bound.END))
                self._workers.submit(Work(log.topic, 0, search, found))
                return
            barrier.looking = False
            if self._barriers.get(barrier.partition.key) is barrier:
                self._found(barrier, log, end, first, error)

        self._lane.begin(search_by_timestamp(log, time, Bound.END, IN_PLACE_LIMITS), found)

    def _found(self, barrier: _Barrier, log: Log, end: int, first: TimedOffset | None, error: Exception | None) -> None:
        """`first`: the first record that was not due when the search began."""
        if log is not barrier.partition.log:
            self._look(barrier)  # the partition has moved to another directory
            return
        if error is not None:
            logger.error("finding due records of %s failed, trying again: %s", log.name, error)
            self._wake_in(barrier, RETRY_MS)
            return
        visible = end if first is None else first.offset
        if visible > log.visible_end:
            log.visible_end = visible
            self._moved(barrier.partition)
        if first is not None:
            self._wake_in(barrier, max(PAUSE_MS, first.timestamp + barrier.delay_ms - self._clock_ms()))
        elif log.end_offset > end:
            self._wake_in(barrier, barrier.delay_ms if barrier.partition.leads else PAUSE_MS)

    def _wake_in(self, barrier: _Barrier, delay_ms: int) -> None:
        def ring() -> None:
            barrier.task = None
            self._look(barrier)

        barrier.task = self._timer.call_later(delay_ms, ring)

    def _watch_clock(self) -> None:
        if self._clock_task is None:
            self._skew_ms = self._clock_ms() - self._monotonic_ms()
            self._clock_task = self._timer.call_later(CLOCK_CHECK_MS, self._check_clock)

    def _check_clock(self) -> None:
        self._clock_task = None
        if not self._barriers:
            return
        skew_ms = self._clock_ms() - self._monotonic_ms()
        if abs(skew_ms - self._skew_ms) > JUMP_MS:
            self.clock_jumps += 1
            logger.warning("the wall clock jumped by %d ms; due times are checked again", skew_ms - self._skew_ms)
            for barrier in list(self._barriers.values()):
                self._look(barrier)
        self._watch_clock()
