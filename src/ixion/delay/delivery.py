"""Delivers the records of one partition that are due: appends them to it, in the order of their due times.

There is one task on the timing wheel for a partition, at the time when its next record is due or a bucket must be
spread. The wheel runs on monotonic time and due times are wall-clock times, so the clock is read again before each
append: nothing is delivered early. What is due is delivered in steps of at most `AT_ONCE` records, which share the
turns of the event loop with the steps of other partitions; a partition that cannot be written to holds up none of them.

A delivered record has the headers of its producer without those about delivery, and three of the broker:
`x-scheduled-for` (the due time), `x-schedule-offset` (its handle) and `x-schedule-created` (the time its producer gave
it). Its timestamp is the due time; with the first one, retention would delete a record that comes a month late at once.

A record can be delivered when its hole is below the high watermark: before that, its producer may still be refused.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ixion.delay.figures import Figures
from ixion.delay.note import NO_PRODUCER, Kind, Note, write_delivered, write_outcome
from ixion.delay.pending import Due
from ixion.delay.target import DELIVERER, empty_batch, fact_of, target_of
from ixion.log.prepare import Origin
from ixion.model.errors import KafkaError
from ixion.records.builder import BatchBuilder
from ixion.records.schedule_headers import CREATED, FOR, NEXT, OFFSET, TOPIC
from ixion.records.split import kept_headers
from ixion.replica.append import appended
from ixion.timer.lane import Lane
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.delay.schedule import Schedule
    from ixion.replica.manager import ReplicaManager
    from ixion.replica.partition import Partition

logger = logging.getLogger(__name__)

AT_ONCE: Final = 256  # records, some 3 ms
AT_ONCE_BYTES: Final = 1 << 20
RETRY_MS: Final = 1_000  # after an append that failed
HELD_MS: Final = 10  # until the next look at a record whose hole is not below the high watermark
FAR_MS: Final = 24 * 3_600_000  # the longest that a task lies on the wheel


class Delivery:
    """Loop thread only."""

    def __init__(
        self, replicas: ReplicaManager, timer: Timer, lane: Lane, clock_ms: Callable[[], int], figures: Figures
    ) -> None:
        self.replicas: Final = replicas
        self._timer = timer
        self._lane = lane
        self._clock_ms = clock_ms
        self._figures = figures
        self._schedule: Schedule | None = None
        self._task: TimerTask | None = None
        self._wake_ms = 0  # when the task rings
        self._runs = False
        self._tokens = 0.0  # records that delivery.delay.release.rate.max allows now
        self._tokens_ms = 0

    def start(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.look_soon()

    def stop(self) -> None:
        self._schedule = None
        self._cancel_task()

    def look_soon(self) -> None:
        """Something has changed: what is due next may be another record."""
        schedule = self._schedule
        if schedule is None or schedule.state is None or self._runs:
            return
        wake_ms = schedule.state.pending.wake_ms()
        if wake_ms < 0:
            self._cancel_task()
        elif self._task is None or wake_ms != self._wake_ms:
            self._wake_at(wake_ms)

    def look_again(self) -> None:
        """The clock was set: the task rings at another time."""
        self._cancel_task()
        self.look_soon()

    # Inside.

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
        """Deliver all that is due. Returns when to look again, in milliseconds; 0: when the next one is due."""
        state = schedule.state
        assert state is not None
        while self._schedule is schedule:
            while state.pending.spread(self._clock_ms()):
                yield
            begun = time.perf_counter_ns()
            wait_ms = self._deliver_some(schedule)
            self._figures.longest_step_ns = max(self._figures.longest_step_ns, time.perf_counter_ns() - begun)
            if wait_ms >= 0:
                return wait_ms
            yield
        return 0

    def _done(self, wait_ms: int | None, error: Exception | None) -> None:
        self._runs = False
        if self._schedule is None:
            return
        if error is not None:
            self._figures.failures += 1
            logger.error("delayed records of %s wait on: %s", self._schedule.partition.log.name, error)
            wait_ms = RETRY_MS
        if wait_ms:
            self._wake_at(self._clock_ms() + wait_ms)
        else:
            self.look_soon()

    def _deliver_some(self, schedule: Schedule) -> int:
        """One append. -1: there may be more; otherwise as `_deliver`."""
        state = schedule.state
        assert state is not None
        partition, log = schedule.partition, schedule.partition.log
        if not partition.leads:
            return RETRY_MS
        now_ms = self._clock_ms()
        allowed = self._allowed(log.config.delivery_delay_release_rate_max, now_ms)
        if allowed == 0:
            return HELD_MS
        due = state.pending.pop(now_ms, allowed)
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
        for note in delivered:
            self._figures.note_lateness(now_ms - note.due_ms)
        self._figures.delivered += len(delivered)
        self._tokens -= len(delivered)
        return -1

    def _append(
        self, schedule: Schedule, due: list[Due], ready: list[Due], notes: dict[int, Note]
    ) -> tuple[list[Due], list[Note]]:
        """What was not delivered, and the notes of what was."""
        partition, log = schedule.partition, schedule.partition.log
        target = target_of(self.replicas, partition) if log.config.delivery_delay_target else None
        goes_to = log.config if target is None else target.log.config
        most = min(AT_ONCE_BYTES, goes_to.max_message_bytes, goes_to.segment_bytes)
        builder = BatchBuilder(max_bytes=most, producer_id=DELIVERER, leader_epoch=partition.leader_epoch)
        delivered: list[Note] = []
        again_ms: list[int] = []
        now_ms = self._clock_ms()
        lost = 0
        for _, offset in ready:
            note = notes.get(offset)
            if note is None:
                lost += 1
                continue
            next_ms = note.next_due(now_ms)
            if not add(builder, note, next_ms, "" if target is None else partition.topic):
                break
            delivered.append(note)
            again_ms.append(next_ms)
        if lost:
            logger.error("%d delayed records of %s cannot be found in its sibling", lost, log.name)
        if delivered and target is not None:
            self._append_to(target, schedule, builder.build(), delivered)
        elif delivered:
            schedule.journal.align(log.end_offset)
            first = log.end_offset
            written, sizes = write_outcome(first, partition.leader_epoch, delivered, again_ms)
            try:
                schedule.journal.write(written)
                info = partition.append(builder.build(), 1, Origin.WHOLE_CHANGE)
            except BaseException:
                schedule.journal.align(log.end_offset)
                raise
            appended(self.replicas, partition, info)
            for place, (note, next_ms) in enumerate(zip(delivered, again_ms, strict=True)):
                settle(schedule, note, first + place, next_ms, sizes.get(first + place, 0))
        gone = {note.offset for note in delivered} | {offset for _, offset in ready if offset not in notes}
        return [each for each in due if each[1] not in gone], delivered

    def _append_to(self, target: Partition, schedule: Schedule, records: bytes, delivered: list[Note]) -> None:
        """Deliver to another topic (`target`)."""
        partition, journal, state = schedule.partition, schedule.journal, schedule.state
        assert state is not None
        info = (target.schedule or target).append(records, 1, Origin.WHOLE_CHANGE)
        appended(self.replicas, target, info)
        for note in delivered:
            settle(schedule, note, -1, -1, 0)
        state.target_seen = target.log.end_offset
        state.unnoted += [fact_of(note) for note in delivered]
        # From here on a failure is harmless: a start finds them in the target.
        try:
            journal.align(partition.log.end_offset)
            first = partition.log.end_offset
            journal.write(write_delivered(first, partition.leader_epoch, state.unnoted, state.target_seen))
            stands_for = empty_batch(len(state.unnoted), partition.leader_epoch)
            appended(self.replicas, partition, partition.append(stands_for, 1, Origin.WHOLE_CHANGE))
            state.unnoted = []
        except KafkaError as error:
            journal.align(partition.log.end_offset)
            logger.warning("what was delivered from %s is not noted yet: %s", partition.log.name, error)

    def _allowed(self, rate: int, now_ms: int) -> int:
        """How many records may be delivered now, by delivery.delay.release.rate.max."""
        if rate == 0:
            return AT_ONCE
        elapsed_ms = min(max(now_ms - self._tokens_ms, 0), 1_000)
        self._tokens = min(self._tokens + rate * elapsed_ms / 1_000, rate)
        self._tokens_ms = now_ms
        return min(int(self._tokens), AT_ONCE)


def settle(schedule: Schedule, note: Note, offset: int, next_ms: int, size: int) -> None:
    """The record of a note was delivered at `offset`; if it recurs, a note of `size` bytes there says so."""
    state = schedule.state
    assert state is not None
    state.bytes -= note.size
    state.forget_id(note)
    if next_ms >= 0:
        state.accept(Kind.RECURS, offset, next_ms, note.schedule_id, size, NO_PRODUCER)


def add(builder: BatchBuilder, note: Note, next_ms: int, topic: str = "") -> bool:
    record = note.record
    headers: list[tuple[str, bytes | None]] = [
        (FOR.decode(), b"%d" % note.due_ms),
        (OFFSET.decode(), b"%d" % note.offset),
        (CREATED.decode(), b"%d" % record.timestamp),
    ]
    if next_ms >= 0:
        headers.append((NEXT.decode(), b"%d" % next_ms))
    if topic:
        headers.append((TOPIC.decode(), topic.encode()))
    return builder.append_encoded(
        builder.last_offset + 1, record.key, record.value, kept_headers(record, headers), note.due_ms
    )
