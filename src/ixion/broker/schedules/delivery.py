"""Delivers the due records of one partition: appends them to it, in the order of their due times.

Each partition has one timer task, at the time when its next record is due or a bucket must be spread. The timer runs on
monotonic time and due times are wall-clock times, so the wall clock is read again before each append: no record is
delivered early. Due records are delivered in short steps (`pace`), which share the turns of the event loop with the
steps of other partitions; a partition that cannot be written to delays no other.

A record can be delivered when its hole is below the high watermark: before that, its producer may still be refused. A
record of a schedule topic is sent to another topic (`sender`): to the one that was the target when the record was
accepted. `delivered` builds delivered records.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ixion.broker.log.prepare import Origin
from ixion.broker.replica.append import appended
from ixion.broker.schedules.delivered import AT_ONCE, AT_ONCE_BYTES, add, gather, settle_all
from ixion.broker.schedules.figures import Figures
from ixion.broker.schedules.note import Note, write_outcome
from ixion.broker.schedules.pending import Due
from ixion.broker.schedules.sender import Sender
from ixion.broker.schedules.target import DELIVERER
from ixion.language.records.builder import BatchBuilder
from ixion.timer.lane import Lane
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.schedules.schedule import Schedule
    from ixion.broker.schedules.targets import Targets

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1_000  # after a failed append
HELD_MS: Final = 10  # until the next check of a record whose hole is not below the high watermark
FAR_MS: Final = 24 * 3_600_000  # the longest wait of a timer task
SENDING: Final = -2  # records are under way to another topic
FEW_HELD: Final = 64
MOST_HELD: Final = 1_000  # due records for unreachable targets that others may overtake


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
        self._complaint = ""  # the last failure that was logged
        self._timer = timer
        self._lane = lane
        self._step = step
        self._clock_ms = clock_ms
        self._figures = figures
        self._schedule: Schedule | None = None
        self._task: TimerTask | None = None
        self._wake_ms = 0  # when the task runs
        self._runs = False
        self._unreachable: dict[str, int] = {}  # targets that cannot be sent to, and when to try again
        self._sends = False  # the last record went to another topic
        self._held = 0  # due records for such targets in front of others
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
            self._complain(self._schedule, error)
            wait_ms = RETRY_MS
        elif not self._unreachable:
            self._complaint = ""
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
        if state.sending is not None:
            return self._send(schedule, state.sending.topic)
        if self._sends:
            allowed = 1  # probably they go to a target again: only find out to which
        most = allowed + self._stuck + self._held
        due = state.pending.pop(now_ms, most)
        if not due:
            return 0
        left = due
        try:
            ready = [each for each in due if each[1] < log.high_watermark]
            if not ready:
                return HELD_MS
            notes = {note.offset: note for note in schedule.journal.find_all(sorted(offset for _, offset in ready))}
            target = self._first_target(ready, notes, now_ms)
            if target is None and len(due) == most and self._held < MOST_HELD:
                self._held = min(max(2 * most, FEW_HELD), MOST_HELD)
                return -1  # look behind them
            if target is None:
                return max(min(self._unreachable.values()) - now_ms, 1)
            self._sends = len(target) > 0
            if target:
                return self._send(schedule, target)
            ready = [each for each in ready if not self._target_of(notes.get(each[1]))][: allowed + self._stuck]
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

    def _target_of(self, note: Note | None) -> str:
        """The topic that a record is delivered to; empty: its own."""
        if note is None:
            return ""  # it is lost
        if note.target is not None or self._schedule is None:
            return note.target or ""
        return self._schedule.partition.log.config.delivery_delay_target

    def _first_target(self, ready: list[Due], notes: dict[int, Note], now_ms: int) -> str | None:
        """The target of the first record that can be delivered now; None if there is none."""
        for held, (_, offset) in enumerate(ready):
            target = self._target_of(notes.get(offset))
            if self._unreachable.get(target, now_ms) <= now_ms:
                self._unreachable.pop(target, None)
                self._held = held
                return target
        return None

    def _send(self, schedule: Schedule, target: str) -> int:
        if self._sender is None:
            self._sender = Sender(schedule, self.targets(), self._replicas, self._choose, self._clock_ms)
        self._sender.start(target, self._sent)
        return SENDING

    def _choose(self, target: str, most: int, max_bytes: int) -> list[Note]:
        """Take records for `target` that are due: at most `most`, in a batch of at most `max_bytes`."""
        schedule = self._schedule
        if schedule is None or schedule.state is None or schedule.state.backlog:
            return []
        log, state, now_ms = schedule.partition.log, schedule.state, self._clock_ms()
        allowed = min(most, self._allowed(log.config.delivery_delay_release_rate_max, now_ms))
        due = state.pending.pop(now_ms, allowed + self._held)
        left = due
        chosen: list[Note] = []
        try:
            ready = [each for each in due if each[1] < log.high_watermark]
            notes = {note.offset: note for note in schedule.journal.find_all(sorted(offset for _, offset in ready))}
            builder = BatchBuilder(max_bytes=max_bytes)
            for _, offset in ready:
                note = notes.get(offset)
                if note is not None and self._target_of(note) == target:
                    if len(chosen) == allowed or not add(builder, note, -1, now_ms, schedule.partition.topic):
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
            self._complain(self._schedule, error)
            retry_ms = self._clock_ms() + self._sender.retry_ms
            if self._schedule.state is not None and self._schedule.state.sending is None:
                # Nothing was sent: records for other targets need not wait.
                self._unreachable[self._sender.target] = retry_ms
                self._wake_at(self._clock_ms())
            else:
                self._wake_at(retry_ms)
            return
        self._complaint = ""
        self._count(delivered, self._clock_ms())
        if delivered:
            self._wake_at(self._clock_ms())
        else:
            self._wake_at(self._clock_ms() + HELD_MS)  # due records are above the high watermark or over the rate

    def _complain(self, schedule: Schedule, error: Exception) -> None:
        self._figures.failures += 1
        if str(error) != self._complaint:  # log a fault once, however long it lasts
            self._complaint = str(error)
            logger.error("delayed records of %s cannot be delivered yet: %s", schedule.partition.log.name, error)

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
                info = partition.append(builder.build(), 1, Origin.DELIVERY)
            except BaseException:
                schedule.journal.align(partition.log.end_offset)
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
