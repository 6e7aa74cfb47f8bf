"""The delayed records of every partition that this broker leads.

A partition has a schedule if its topic has delivery.delay.mode=record, or once had it: records that wait in its sibling
are delivered in every mode. The notes of the sibling are loaded on a worker thread when the broker begins to lead the
partition. Until then appends to it are refused with a retriable error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.acl.line_limit import LineLimit
from ixion.broker.log.checked_batch import CheckedBatch
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.prepare import AppendInfo, Origin
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.siblings import make_sibling
from ixion.broker.schedules.figures import Figures
from ixion.broker.schedules.pace import Pace
from ixion.language.model.complaints import Complaints
from ixion.language.model.delay_names import sibling_id, sibling_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.layout import Buffer
from ixion.timer.lane import Lane
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.schedules.schedule import Schedule
    from ixion.broker.schedules.state import State
    from ixion.broker.schedules.targets import Targets

logger = logging.getLogger(__name__)

BACKLOG_NS: Final = 250_000  # a turn of what applies accepted records
RETRY_MS: Final = 1_000  # after a sibling could not be opened or read
CLOCK_CHECK_MS: Final = 1_000
JUMP_MS: Final = 500  # a larger drift between the wall clock and the timer since the last check counts as a jump
UPKEEP_CHECKS: Final = 30  # clock checks between two checks of the siblings
SNAPSHOT_NOTES: Final = 50_000  # offsets after the last snapshot at which another is made
LAST_SNAPSHOT: Final = 1_000  # waiting records from which on a stop writes a snapshot
REFUSALS_BURST: Final = 10  # refused produces that are logged at once; then REFUSALS_RATE per second
REFUSALS_RATE: Final = 1
UNSEEN: Final = 10_000  # offsets after the last note at which a SEEN note is written: a start searches them


class NotReady:
    """Refuses every append: to a partition whose sibling cannot be opened, or from a client to a sibling."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def append(self, _records: Buffer, _acks: int, _origin: Origin, _checked: CheckedBatch | None = None) -> AppendInfo:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._reason)

    def flush(self, log: Log) -> None:
        log.flush()

    def may_join(self, _broker_id: int) -> bool:
        return False

    def sibling_moved(self, _log: Log) -> None:
        """Does nothing: there is no sibling, or this is the one."""


class Schedules:
    """Loop thread only. `monotonic_ms` is the clock of the timer."""

    def __init__(
        self,
        replicas: ReplicaManager,
        logs: LogManager,
        *,
        timer: Timer,
        loop: asyncio.AbstractEventLoop,
        workers: Executor,
        clock_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
        targets: Callable[[], Targets],
    ) -> None:
        """`targets` is called if there is a schedule topic."""
        self.figures = Figures()
        self._replicas = replicas
        self._logs = logs
        self._timer = timer
        self._loop = loop
        self._workers = workers
        self._clock_ms = clock_ms
        self._monotonic_ms = monotonic_ms
        self._targets = targets
        self._refusals = LineLimit(monotonic_ms, REFUSALS_BURST, REFUSALS_RATE)
        self._pace = Pace(loop.call_soon, loop.call_later, self._produced)
        self._lane = Lane(self._pace.begin, fair=True, turn_ns=0, between=self._pace.pause)
        self._backlogs = Lane(loop.call_soon, fair=True, turn_ns=BACKLOG_NS)  # its producers wait: no pauses
        self._schedules: dict[TopicPartition, Schedule] = {}
        self._left: dict[TopicPartition, int] = {}  # how many records waited when this broker resigned
        self._complaints = Complaints(logger)
        self._skew_ms = 0
        self._checks = 0
        self._clock_task: TimerTask | None = None
        self._stopped = False
        replicas.on_leadership.append(self._leadership_changed)
        replicas.on_reconfigured.append(self.follow)
        replicas.on_moved.append(self._moved)

    def __iter__(self) -> Iterator[Schedule]:
        return iter(list(self._schedules.values()))

    def get(self, key: TopicPartition) -> Schedule | None:
        return self._schedules.get(key)

    @property
    def working(self) -> bool:
        """Whether something is delivered or applied in the next turns of the loop."""
        return self._lane.waiting > 0 or self._backlogs.waiting > 0

    def _produced(self) -> int:
        return self._replicas.counters.messages_in - self.figures.delivered

    def _leadership_changed(self, topic: str, number: int, leader_epoch: int) -> None:
        partition = self._replicas.partition(topic, number)
        if leader_epoch < 0 or partition is None:
            self._forget((topic, number))
        else:
            self.follow(partition)

    def follow(self, partition: Partition) -> None:
        """Call this when this broker begins to lead the partition, and when its settings change."""
        if not partition.leads:
            self._forget(partition.key)
            return
        config = partition.log.config
        sibling = sibling_of(partition.topic)
        known = self._schedules.get(partition.key)
        if known is not None:
            known.delivery.look_soon()
            if known.shown.leads and known.shown.leader_epoch != partition.leader_epoch:
                self._show_again(known)
        elif config.delays_records or self._logs.get(sibling, partition.number) is not None:
            self._open(partition)

    def _moved(self, partition: Partition) -> None:
        """A move of the partition and its sibling to another directory has ended."""
        schedule = self._schedules.get(partition.key)
        sibling = self._logs.get(sibling_of(partition.topic), partition.number)
        if schedule is not None and sibling is not None:
            schedule.sibling_moved(sibling)  # again: the move may have seen it before it had the sibling
            if schedule.state is not None:
                schedule.state.move_pages()

    def _show_again(self, schedule: Schedule) -> None:
        """This broker leads the partition in a new epoch."""
        try:
            self._show(schedule)
        except KafkaError as error:
            logger.error("loading the delayed records of %s again: %s", schedule.partition.log.name, error)
            self._forget(schedule.partition.key)
            self._open(schedule.partition)

    def _open(self, partition: Partition) -> None:
        sibling = sibling_of(partition.topic)
        try:
            log = make_sibling(self._replicas, partition)
        except KafkaError as error:
            self._complain(partition, "cannot be accepted", error)
            partition.schedule = NotReady(f"{sibling}-{partition.number} cannot be opened: {error}")
            self._timer.call_later(RETRY_MS, partial(self._open_again, partition))
            return
        from ixion.broker.schedules.backlog import Backlog  # imported only if there are delayed records
        from ixion.broker.schedules.delivery import Delivery
        from ixion.broker.schedules.journal import Journal
        from ixion.broker.schedules.schedule import Schedule

        journal = Journal(log, partial(self._flush_sealed, log))
        delivery = Delivery(
            self._replicas, self._timer, self._lane, self._pace.step, self._clock_ms, self.figures, self._targets
        )
        backlog = Backlog(partition.log.name, self._backlogs, self._timer, self.figures, delivery.look_soon)
        shown = Partition(log, self._replicas.node_id, 1, 0, self._clock_ms)
        schedule = Schedule(partition, journal, self.figures, delivery, shown, backlog, self._refusals)
        self._schedules[partition.key] = schedule
        partition.schedule = schedule
        if log.end_offset > partition.log.end_offset:
            self._align(schedule)
        else:
            self._begin(schedule)
        self._watch_clock()

    def _align(self, schedule: Schedule) -> None:
        """Truncate notes about what the partition does not have; retry until it succeeds."""
        if self._is_current(schedule):
            end = schedule.partition.log.end_offset
            work = self._loop.run_in_executor(self._workers, schedule.journal.align, end)
            work.add_done_callback(partial(self._aligned, schedule))

    def _aligned(self, schedule: Schedule, done: asyncio.Future[bool]) -> None:
        if not self._is_current(schedule) or done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._align_later(schedule, error)
        else:
            self.figures.orphaned += done.result()
            self._begin(schedule)

    def _align_later(self, schedule: Schedule, error: BaseException) -> None:
        self._complain(schedule.partition, "cannot be aligned", error)
        self._timer.call_later(RETRY_MS, partial(self._align, schedule))

    def _begin(self, schedule: Schedule) -> None:
        try:
            self._show(schedule)
        except KafkaError as error:
            self._align_later(schedule, error)
        else:
            self._load(schedule)

    def _show(self, schedule: Schedule) -> None:
        """Let followers copy the sibling, and clients read it: `ixion schedule list` does. Clients cannot append."""
        partition, shown = schedule.partition, schedule.shown
        here = self._replicas.node_id
        shown.topic_id = sibling_id(partition.topic_id) if partition.topic_id else b""
        shown.covers = partition
        shown.schedule = NotReady(f"{shown.log.name} takes no records from clients")
        shown.make_leader(partition.leader_epoch, (here,), partition.replicas)
        self._replicas.partitions[shown.key] = shown

    def _open_again(self, partition: Partition) -> None:
        if not self._stopped and partition.leads and isinstance(partition.schedule, NotReady):
            self._open(partition)

    def _load(self, schedule: Schedule) -> None:
        """Load the notes; retry until it succeeds."""
        from ixion.broker.schedules.loading import load

        if self._is_current(schedule):
            work = self._loop.run_in_executor(self._workers, load, schedule.journal, schedule.partition.log)
            work.add_done_callback(partial(self._loaded, schedule))

    def _loaded(self, schedule: Schedule, done: asyncio.Future[State]) -> None:
        if not self._is_current(schedule) or done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._complain(schedule.partition, "cannot be loaded", error)
            self._timer.call_later(RETRY_MS, partial(self._load, schedule))
            return
        self._complaints.end(schedule.partition.key)
        schedule.state = done.result()
        schedule.delivery.start(schedule)

    def _complain(self, partition: Partition, what: str, error: BaseException) -> None:
        """Log a fault that is retried until it is over."""
        self._complaints.add(
            partition.key, logging.ERROR, "delayed records of %s %s: %s", partition.log.name, what, error
        )

    def _is_current(self, schedule: Schedule) -> bool:
        return not self._stopped and self._schedules.get(schedule.partition.key) is schedule

    def _forget(self, key: TopicPartition) -> None:
        schedule = self._schedules.pop(key, None)
        if schedule is not None:
            schedule.backlog.stop()
            schedule.delivery.stop()
            schedule.journal.close()
            schedule.partition.schedule = None
            self._replicas.partitions.pop((sibling_of(key[0]), key[1]), None)
            if schedule.state is not None:
                self._left[key] = schedule.state.count

    def topics_deleted(self, topics: Collection[str]) -> None:
        """Count the waiting records that were dropped with these topics, whether or not their replicas have stopped."""
        for key in [key for key in self._schedules if key[0] in topics]:
            self._forget(key)
        for key in [key for key in self._left if key[0] in topics]:
            self.figures.dropped += self._left.pop(key)

    def _flush_sealed(self, log: Log) -> None:
        def flush() -> None:
            try:
                log.flush(log.segments.active.base_offset)
            except KafkaError as error:
                logger.error("flushing %s: %s", log.name, error)

        if not self._stopped:
            self._loop.run_in_executor(self._workers, flush)

    # The clock, and maintenance.

    def _watch_clock(self) -> None:
        if self._clock_task is None and not self._stopped:
            self._skew_ms = self._clock_ms() - self._monotonic_ms()
            self._clock_task = self._timer.call_later(CLOCK_CHECK_MS, self._check_clock)

    def _check_clock(self) -> None:
        self._clock_task = None
        if not self._schedules:
            return
        moved_ms = self._clock_ms() - self._monotonic_ms() - self._skew_ms
        if abs(moved_ms) > JUMP_MS:
            self.figures.clock_jumps += 1
            logger.warning("the wall clock jumped by %d ms; due times are checked again", moved_ms)
            for schedule in self:
                schedule.delivery.look_again()
        self._checks += 1
        if self._checks % UPKEEP_CHECKS == 0:
            self._lane.run(self._upkeep(), self._upkeep_done, at_once=False)
        self._watch_clock()

    def _upkeep(self) -> Steps[None]:
        for schedule in self:
            if self._is_current(schedule):
                self._look_after(schedule, UNSEEN)
            yield

    def _upkeep_done(self, _: None, error: Exception | None) -> None:
        if error is not None:
            logger.error("maintenance of delayed records failed: %s", error)

    def _look_after(self, schedule: Schedule, unseen: int) -> None:
        """Delete notes that are no longer needed, and write a SEEN note if many offsets follow the last note."""
        state, log, journal = schedule.state, schedule.partition.log, schedule.journal
        if state is None or not schedule.partition.leads:
            return
        if journal.log.end_offset - state.snapshot_end >= SNAPSHOT_NOTES:
            self._snapshot(schedule, state)
        try:
            if log.end_offset - journal.log.end_offset >= unseen:
                journal.note_seen(log.end_offset - 1, schedule.partition.leader_epoch)
            first = state.first_offset()
            journal.forget_below(first if first >= 0 else journal.log.end_offset)
        except KafkaError as error:
            logger.error("maintenance of the delayed records of %s failed: %s", log.name, error)

    def _snapshot(self, schedule: Schedule, state: State) -> None:
        """Write a snapshot, so that the next start is quick."""
        from ixion.broker.schedules.snapshot import capture, write

        if schedule.captured is not None:
            return
        try:
            captured = schedule.captured = capture(state)
        except KafkaError as error:
            logger.error("a snapshot of %s cannot be made: %s", schedule.journal.log.name, error)
            return
        if captured is not None:
            work = self._loop.run_in_executor(self._workers, write, captured, schedule.journal.log.folder)
            work.add_done_callback(partial(self._snapshot_written, schedule, state))

    def _snapshot_written(self, schedule: Schedule, state: State, done: asyncio.Future[None]) -> None:
        captured, schedule.captured = schedule.captured, None
        if captured is None or done.cancelled():
            return
        if captured.pages is not None:
            captured.pages.thaw()
        error = done.exception()
        if error is None:
            state.snapshot_end = captured.end_offset
        else:
            logger.error("a snapshot of %s cannot be written: %s", schedule.journal.log.name, error)

    def _last_snapshot(self, schedule: Schedule) -> None:
        """Write the snapshot of a stop. Blocks."""
        from ixion.broker.schedules.snapshot import capture, write

        state, journal = schedule.state, schedule.journal
        if state is None or schedule.captured is not None or state.snapshot_end == journal.log.end_offset:
            return
        if state.count < LAST_SNAPSHOT:
            return  # loading the notes is as quick
        try:
            while state.advance_backlog():
                pass
            captured = capture(state)
            if captured is not None:
                write(captured, journal.log.folder)
        except (KafkaError, OSError) as error:
            logger.error("a snapshot of %s cannot be written: %s", journal.log.name, error)

    def stop(self) -> None:
        self._stopped = True
        if self._clock_task is not None:
            self._clock_task.cancel()
            self._clock_task = None
        for schedule in self:
            self._look_after(schedule, 1)
            self._last_snapshot(schedule)
            schedule.backlog.stop()
            schedule.delivery.stop()
