"""Delivers the due records of one partition: appends them to it, in the order of their due times.

Each partition has one timer task, at the time when its next record is due or a bucket must be spread. The timer runs on
monotonic time and due times are wall-clock times, so the wall clock is read again before each append: no record is
delivered early. Due records are delivered in short steps (`pace`), which share the turns of the event loop with the
steps of other partitions; a partition that cannot be written to delays no other.

A record can be delivered when its hole is below the high watermark: before that, its producer may still be refused. A
record of a schedule topic is sent to another topic (`sender`). `delivered` builds delivered records.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ixion.delay.delivered import AT_ONCE, AT_ONCE_BYTES, add, gather, settle_all
from ixion.delay.figures import Figures
from ixion.delay.note import Note, write_outcome
from ixion.delay.pending import Due
from ixion.delay.sender import Sender
from ixion.delay.target import DELIVERER
from ixion.log.prepare import Origin
from ixion.records.builder import BatchBuilder
from ixion.replica.append import appended
from ixion.timer.lane import Lane
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.delay.schedule import Schedule
    from ixion.delay.targets import Targets
    from ixion.replica.manager import ReplicaManager

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1_000  # after a failed append
HELD_MS: Final = 10  # until the next check of a record whose hole is not below the high watermark
FAR_MS: Final = 24 * 3_600_000  # the longest wait of a timer task
SENDING: Final = -2  # records are under way to another topic


class Delivery:
    """Loop thread only."""

    def __init__(
        self,
        replicas: ReplicaManager,
        timer: Timer,
        lane: Lane,
        step: Callable[[], int],
        clock_ms: Callable[[], int],
        figures: Figures,
        targets: Callable[[], Targets],
    ) -> None:
        """`targets` is called only for schedule topics."""
        self.targets: Final = targets
        self._replicas = replicas
        self._sender: Sender | None = None
        self._complaint = ""  # the last send failure that was logged
        self._timer = timer
        self._lane = lane
        self._step = step
        self._clock_ms = clock_ms
        self._figures = figures
        self._schedule: Schedule | None = None
        self._task: TimerTask | None = None
        self._wake_ms = 0  # when the task runs
        self._runs = False
        self._stuck = 0  # due recurring records whose next time cannot be computed
        self._tokens = 0.0  # records that delivery.delay.release.rate.max allows now
        self._tokens_ms = 0

    def start(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.look_soon()

    def stop(self) -> None:
        self._schedule = None
        self._cancel_task()
        if self._sender is not None:
            self._sender.stop()
            self._sender = None

    def look_soon(self) -> None:
        """Check again after a change: another record may be due next."""
        schedule = self._schedule
        if schedule is None or schedule.state is None or self._runs:
            return
        wake_ms = schedule.state.pending.wake_ms()
        if schedule.state.sending is not None:
            wake_ms = self._clock_ms()
        if wake_ms < 0:
            self._cancel_task()
        elif self._task is None or wake_ms != self._wake_ms:
            self._wake_at(wake_ms)

    def look_again(self) -> None:
        """Set the timer task again, after the wall clock was set."""
        self._cancel_task()
        self.look_soon()

    # Internals.

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _wake_at(self, wake_ms: int) -> None:
        self._cancel_task()
        self._wake_ms = wake_ms
        delay_ms = min(max(wake_ms - self._clock_ms(), 0), FAR_MS)
        self._task = self._timer.call_later(delay_ms, self._ring)

    def _ring(self) -> None:
        self._task = None
        schedule = self._schedule
        if schedule is not None and not self._runs:
            self._runs = True
            self._lane.run(self._deliver(schedule), self._done, at_once=False)

    def _deliver(self, schedule: Schedule) -> Steps[int]:
        """Deliver all due records. Returns when to check again, in milliseconds; 0: when the next one is due.

        SENDING: nothing else is delivered until `_sent` is called.
        """
        state = schedule.state
        assert state is not None
        while self._schedule is schedule:
            while state.pending.spread(self._clock_ms()):
                yield
            begun = time.perf_counter_ns()
            wait_ms = self._deliver_some(schedule)
            self._figures.longest_step_ns = max(self._figures.longest_step_ns, time.perf_counter_ns() - begun)
            if wait_ms >= 0 or wait_ms == SENDING:
                return wait_ms
            yield
        return 0

    def _done(self, wait_ms: int | None, error: Exception | None) -> None:
        if wait_ms == SENDING:
            return
        self._runs = False
        if self._schedule is None:
            return
        if error is not None:
            self._figures.failures += 1
            logger.error("delayed records of %s cannot be delivered yet: %s", self._schedule.partition.log.name, error)
            wait_ms = RETRY_MS
        if wait_ms:
            self._wake_at(self._clock_ms() + wait_ms)
        else:
            self.look_soon()

    def _deliver_some(self, schedule: Schedule) -> int:
        """Deliver one step. Returns -1 if there may be more; otherwise as `_deliver`."""
        state = schedule.state
        assert state is not None
        partition, log = schedule.partition, schedule.partition.log
        if not partition.leads:
            return RETRY_MS
        now_ms = self._clock_ms()
        if state.backlog:
            return HELD_MS  # the backlog may cancel records that are due
        allowed = min(self._allowed(log.config.delivery_delay_release_rate_max, now_ms), self._step())
        if allowed == 0:
            return HELD_MS
        if state.sending is not None or log.config.delivery_delay_target:
            return self._send(schedule)
        due = state.pending.pop(now_ms, allowed + self._stuck)
        if not due:
            return 0
        left = due
        try:
            ready = [each for each in due if each[1] < log.high_watermark]
            if not ready:
                return HELD_MS
            notes = {note.offset: note for note in schedule.journal.find_all(sorted(offset for _, offset in ready))}
            left, delivered = self._append(schedule, due, ready, notes)
        finally:
            for due_ms, offset in left:
                state.pending.add(due_ms, offset)
        self._count(delivered, now_ms)
        return -1

    def _count(self, delivered: list[Note], now_ms: int) -> None:
        for note in delivered:
            self._figures.note_lateness(now_ms - note.due_ms)
        self._figures.delivered += len(delivered)
        self._tokens = max(self._tokens - len(delivered), 0.0)

    # Schedule topics.

    def _send(self, schedule: Schedule) -> int:
        state = schedule.state
        assert state is not None
        now_ms = self._clock_ms()
        first_ms = state.pending.wake_ms()
        if state.sending is None and (first_ms < 0 or first_ms > now_ms):
            return 0
        if self._sender is None:
            self._sender = Sender(schedule, self.targets(), self._replicas, self._choose)
        self._sender.start(self._sent)
        return SENDING

    def _choose(self, most: int, max_bytes: int) -> list[Note]:
        """Take records that are due: at most `most`, in a batch of at most `max_bytes`."""
        schedule = self._schedule
        if schedule is None or schedule.state is None or schedule.state.backlog:
            return []
        log, state, now_ms = schedule.partition.log, schedule.state, self._clock_ms()
        due = state.pending.pop(now_ms, min(most, self._allowed(log.config.delivery_delay_release_rate_max, now_ms)))
        left, chosen = due, []
        try:
            ready = [each for each in due if each[1] < log.high_watermark]
            notes = {note.offset: note for note in schedule.journal.find_all(sorted(offset for _, offset in ready))}
            builder = BatchBuilder(max_bytes=max_bytes)
            for _, offset in ready:
                note = notes.get(offset)
                if note is not None:
                    if not add(builder, note, -1, schedule.partition.topic):
                        break
                    chosen.append(note)
            gone = {note.offset for note in chosen} | self._lost(schedule, ready, notes)
            left = [each for each in due if each[1] not in gone]
        finally:
            for due_ms, offset in left:
                state.pending.add(due_ms, offset)
        return chosen

    def _sent(self, delivered: list[Note], error: Exception | None) -> None:
        self._runs = False
        if self._schedule is None or self._sender is None:
            return
        if error is not None:
            self._figures.failures += 1
            if str(error) != self._complaint:  # log a fault once, however long it lasts
                self._complaint = str(error)
                logger.warning(
                    "delayed records of %s cannot be delivered yet: %s", self._schedule.partition.log.name, error
                )
            self._wake_at(self._clock_ms() + self._sender.retry_ms)
            return
        self._complaint = ""
        self._count(delivered, self._clock_ms())
        if delivered:
            self._wake_at(self._clock_ms())
        else:
            self._wake_at(self._clock_ms() + HELD_MS)  # due records are above the high watermark or over the rate

    def _lost(self, schedule: Schedule, ready: list[Due], notes: dict[int, Note]) -> set[int]:
        lost = {offset for _, offset in ready if offset not in notes}
        if lost:
            name = schedule.partition.log.name
            logger.error("%d delayed records of %s cannot be found in its sibling", len(lost), name)
        return lost

    # Other topics.

    def _append(
        self, schedule: Schedule, due: list[Due], ready: list[Due], notes: dict[int, Note]
    ) -> tuple[list[Due], list[Note]]:
        """Returns the records that were not delivered, and the notes of those that were."""
        partition, log = schedule.partition, schedule.partition.log
        most = min(AT_ONCE_BYTES, log.config.max_message_bytes, log.config.segment_bytes)
        builder = BatchBuilder(max_bytes=most, producer_id=DELIVERER, leader_epoch=partition.leader_epoch)
        gathered = gather(builder, ready, notes, self._clock_ms())
        stuck, self._stuck = self._stuck, gathered.stuck
        delivered = gathered.notes
        gone = {note.offset for note in delivered} | self._lost(schedule, ready, notes)
        if delivered:
            schedule.journal.align(log.end_offset)
            first = log.end_offset
            written, sizes = write_outcome(first, partition.leader_epoch, delivered, gathered.again_ms)
            try:
                schedule.journal.write(written)
                info = partition.append(builder.build(), 1, Origin.WHOLE_CHANGE)
            except BaseException:
                schedule.journal.align(log.end_offset)
                raise
            appended(self._replicas, partition, info)
            state = schedule.state
            assert state is not None
            settle_all(state, gathered, first, sizes)
        elif gathered.fault is not None and self._stuck <= stuck:  # otherwise others may be deliverable behind them
            raise gathered.fault
        return [each for each in due if each[1] not in gone], delivered

    def _allowed(self, rate: int, now_ms: int) -> int:
        """How many records may be delivered now, by delivery.delay.release.rate.max."""
        if rate == 0:
            return AT_ONCE
        elapsed_ms = min(max(now_ms - self._tokens_ms, 0), 1_000)
        self._tokens = min(self._tokens + rate * elapsed_ms / 1_000, rate)
        self._tokens_ms = now_ms
        return min(int(self._tokens), AT_ONCE)
