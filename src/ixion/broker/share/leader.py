"""One share partition at the broker that leads its partition: loading, reading, storing, and time.

The rules are in `partition`. Here its state is read once (`load`), its changes are stored, one write at a time, and one
task of the wheel stands for all of its locks and deferred records.

What arrives while a write is under way is stored together by the next one. So the writes of a share partition keep
their order, and thirty-two members that acknowledge at the same time cost two writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ixion.broker.log.batch_finder import find_batches
from ixion.broker.log.checked_batch import IN_PLACE_LIMITS
from ixion.broker.log.handle import FileSlice
from ixion.broker.log.log import UNKNOWN
from ixion.broker.log.timestamps import TimedOffset, search_by_timestamp, search_thoroughly
from ixion.broker.log.view import Bound, limit_of
from ixion.broker.replica.fair_workers import Work
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.share_persister import NO_OFFSET, SharePartitionKey, ShareState, StateBatch, StateUpdate
from ixion.broker.share.acknowledgement import Acknowledgement, Change
from ixion.broker.share.acquiring import Acquired, Acquiring, Found
from ixion.broker.share.letter_writer import LetterWriter
from ixion.broker.share.partition import SharePartition
from ixion.broker.share.runs import Run
from ixion.broker.share.states import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE, DEFERRED
from ixion.broker.share.terms import Terms
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.faults import LongWorkError
from ixion.timer.task import TimerTask
from ixion.timer.turns import Steps, start_in_turns

if TYPE_CHECKING:
    from ixion.broker.share.manager import ShareManager

logger = logging.getLogger(__name__)

TRIES: Final = 16  # reads in a row that find only batches without anything to deliver

# The state that was read belongs to another leader now, or an administrator has changed or deleted it.
FENCED: Final = (
    *(ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH),
    *(ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),  # it was deleted
)
MOST_OWED: Final = 10_000
AT_ONCE: Final = 500  # changes settled in one step, some 1.5 ms
# Errors of the share coordinator by what the client gets.
AS_SEEN: Final = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

Done = Callable[[ErrorCode], None]


class Wish(NamedTuple):
    """What a member wants of one partition now."""

    member: str
    max_records: int
    max_bytes: int
    batch_size: int
    strict: bool


class Given(NamedTuple):
    records: bytes | FileSlice
    acquired: list[Acquired]


class Write(NamedTuple):
    changes: list[Change]
    done: Done | None  # of an acknowledgement; None: the changes count already


class Expiry(TimerTask):
    """The task on the wheel."""

    __slots__ = ("_leader",)

    def __init__(self, leader: ShareLeader) -> None:
        super().__init__(0)
        self._leader = leader

    def run(self) -> None:
        self._leader.expire()


class ShareLeader:
    def __init__(self, manager: ShareManager, key: SharePartitionKey, partition: Partition) -> None:
        self.key: Final = key
        self.partition: Final = partition
        self.leader_epoch: Final = partition.leader_epoch
        self.waiting_key: Final = (key.group, partition.topic, partition.number)
        self.core: SharePartition | None = None  # None: it is being loaded
        self.closed = False
        self.timer_wakes = 0
        self._manager: Final = manager
        self._state: ShareState | None = None  # read, but without a start yet
        self._searching = False
        self._state_epoch = -1
        self._writes: list[Write] = []
        self._owed: list[Change] = []  # changes that count already; a write of them failed
        self._writing = False
        self._flushing = False
        self._will_flush = False
        self.failure = ErrorCode.NONE  # why it was dropped
        self._expiry: Final = Expiry(self)
        self._armed_ms = -1
        self._letters: LetterWriter | None = None

    @property
    def terms(self) -> Terms:
        return self._manager.terms_of(self.key.group)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for a write."""
        return not self._writing and not self._writes

    @property
    def owes_letters(self) -> bool:
        return self.core is not None and self.core.runs.tallies[ARCHIVING] > 0 and self._manager.post is not None

    # Loading.

    def load(self) -> None:
        self._manager.persister.read_state(self.key, self.leader_epoch, self._loaded)

    def _loaded(self, code: ErrorCode, state: ShareState | None) -> None:
        if self.closed:
            return
        if state is None:
            logger.info("share partition %s of group %s cannot be loaded: %s", self.partition.key, self.key.group, code)
            self._manager.drop(self, AS_SEEN.get(code, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self._state = state
        self.resolve()

    def resolve(self) -> None:
        """Begin, once it is known where: where the group was, or where its auto.offset.reset says."""
        state = self._state
        if state is None or self.closed or self.core is not None or self._searching:
            return
        if state.start_offset != NO_OFFSET:
            self._begin(state.start_offset)
            return
        log = self.partition.log
        terms = self.terms
        if log.high_watermark < self.partition.epoch_start or log.visible_end == UNKNOWN:
            return  # a new leader does not know its end yet; the next event of the partition comes here again
        if terms.from_earliest:
            self._begin(log.log_start)
        elif terms.back_ms is None:
            self._begin(limit_of(log, Bound.VISIBLE))
        else:
            self._searching = True
            self._search(self._manager.now_ms() - terms.back_ms)

    def _search(self, since_ms: int) -> None:
        """On the loop, or on a worker thread from the first batch on that takes long to inflate."""
        log, replicas = self.partition.log, self._manager.replicas

        def found(first: TimedOffset | None, error: Exception | None, _used_ns: int = 0) -> None:
            if isinstance(error, LongWorkError):
                search = partial(search_thoroughly, search_by_timestamp(log, since_ms, Bound.VISIBLE))
                replicas.fair_workers.submit(Work(log.topic, 0, search, found))
            else:
                self._found(first, error)

        replicas.fetch_lane.run(search_by_timestamp(log, since_ms, Bound.VISIBLE, IN_PLACE_LIMITS), found)

    def _found(self, found: TimedOffset | None, error: Exception | None) -> None:
        self._searching = False
        if self.closed:
            return
        if error is not None:
            logger.error("no start by time in %s", self.partition.log.name, exc_info=error)
            self._manager.drop(self, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._begin(limit_of(self.partition.log, Bound.VISIBLE) if found is None else found.offset)

    def _begin(self, start: int) -> None:
        state, log = self._state, self.partition.log
        assert state is not None
        self._state = None
        self._state_epoch = state.state_epoch
        core = SharePartition(min(max(start, log.log_start), log.end_offset))
        stored = [Run(each.first, each.last, each.state, each.deliveries, 0, each.due_ms) for each in state.batches]
        core.load([run for run in stored if run.last >= core.start], log.end_offset, self._manager.now_ms())
        self.core = core
        self._arm()
        self._write_letters()
        self._manager.wake(self)

    # Acquiring.

    def limit(self) -> int:
        """How far members may read."""
        bound = Bound.VISIBLE_STABLE if self.terms.committed_only else Bound.VISIBLE
        return limit_of(self.partition.log, bound)

    def next_offset(self) -> int:
        """Where there is something to acquire; -1: nowhere, now."""
        core = self.core
        if core is None:
            self.resolve()
            core = self.core
            if core is None:
                return -1
        self._follow_log_start(core)
        offset = core.next_offset(self.terms)
        return offset if 0 <= offset < self.limit() else -1

    def acquire(self, wish: Wish) -> Given | None:
        """None: nothing can be acquired now. KafkaError if the log cannot be read."""
        terms = self.terms
        bound = Bound.VISIBLE_STABLE if terms.committed_only else Bound.VISIBLE
        for _ in range(TRIES):
            offset = self.next_offset()
            core = self.core
            if core is None or offset < 0:
                break
            log = self.partition.log
            wanted = partial(self._count_wanted, core, core.may_extend(terms))
            most = min(wish.max_records, max(terms.max_locks - core.locked, 1))
            found = find_batches(log, offset, bound, wish.max_bytes, wanted, most)
            if found is None:
                break
            now_ms = self._manager.now_ms()
            acquiring = Acquiring(
                core,
                wish.member,
                now_ms,
                terms,
                most=wish.max_records,
                batch_size=wish.batch_size,
                strict=wish.strict,
            )
            acquired = acquiring.take([Found(each.base, each.last, each.aborted) for each in found.batches], offset)
            if acquiring.changes:
                self._manager.figures.archived("aborted or compacted", size_of(acquiring.changes))
                self._submit(Write(acquiring.changes, None))
            if acquired:
                self._arm()
                self._manager.figures.acquired += acquiring.taken
                return Given(found.records(acquired[0].first, acquired[-1].last), acquired)
            if not acquiring.changes:
                break
        return None

    @staticmethod
    def _count_wanted(core: SharePartition, may_extend: bool, first: int, last: int) -> int:
        count = 0
        if first < core.end:
            count = sum([run.last - run.first + 1 for run in core.runs.within(first, last) if run.state == AVAILABLE])
        if may_extend and last >= core.end:
            count += last - max(first, core.end) + 1
        return count

    def _follow_log_start(self, core: SharePartition) -> None:
        log_start = self.partition.log.log_start
        if log_start > core.start:
            gone = core.move_start(log_start)
            if gone:
                self._manager.figures.archived("deleted from the log", gone)

    # Acknowledging.

    def acknowledge(self, member: str, batches: list[Acknowledgement], done: Done) -> None:
        """`done` is called once, when the acknowledgements are stored or refused; perhaps before this returns.

        KafkaError if they are refused at once.
        """
        core = self.core
        if core is None:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "nothing has been acquired here")
        self._follow_log_start(core)
        changes = core.acknowledge(member, batches, self._manager.now_ms(), self.terms)
        self._arm()
        if changes:
            self._submit(Write(changes, done))
        else:
            done(ErrorCode.NONE)

    def release(self, member: str) -> None:
        """The session of the member has ended."""
        core = self.core
        if core is not None:
            changes = core.release(member, self.terms)
            if changes:
                self._manager.figures.note(changes, "released by the end of a session")
                self._submit(Write(changes, None))
                self._write_letters()
                self._manager.wake(self)

    # Storing.

    def _submit(self, write: Write) -> None:
        self._writes.append(write)
        if write.done is not None:
            self._flush()
        elif not self._will_flush:  # nobody waits: at the end of this turn, with others
            self._will_flush = True
            self._manager.call_soon(self._flush)

    def _flush(self) -> None:
        self._will_flush = False
        if self._flushing:
            return  # by a caller of this one: a write may be done before `write_state` returns
        self._flushing = True
        try:
            while self._writes and not self._writing and not self.closed:
                self._write()
        finally:
            self._flushing = False

    def _write(self) -> None:
        core = self.core
        assert core is not None
        writes, self._writes = self._writes, []
        self._writing = True
        owed, self._owed = self._owed, []
        changes = [*owed, *[change for write in writes for change in write.changes]]
        waiting = [change for write in writes if write.done is not None for change in write.changes]
        start, complete = core.stored_start(waiting)
        update = StateUpdate(
            state_epoch=self._state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=start,
            delivery_complete_count=complete,
            batches=tuple([stored(change) for change in changes if change.last >= start]),
        )
        self._manager.figures.writes += 1
        self._manager.persister.write_state(self.key, update, partial(self._written, core, writes, owed))

    def _written(self, core: SharePartition, writes: list[Write], owed: list[Change], code: ErrorCode) -> None:
        if code != ErrorCode.NONE:  # the next write has them, before its own changes
            owed = [*owed, *[change for write in writes if write.done is None for change in write.changes]]
            self._owed = owed[-MOST_OWED:]
            self._manager.figures.failed_writes += 1

        def settled(_: None, error: Exception | None) -> None:
            if error is not None:
                logger.error("changes of %s could not be settled", self.partition.log.name, exc_info=error)
            self._settled(writes, code)

        start_in_turns(self._manager.call_soon, self._settle(core, writes, code == ErrorCode.NONE), settled)

    def _settle(self, core: SharePartition, writes: list[Write], are_stored: bool) -> Steps[None]:
        for write in writes:
            if write.done is not None:
                for begin in range(0, len(write.changes), AT_ONCE):
                    if begin:
                        yield
                    core.settle(write.changes[begin : begin + AT_ONCE], are_stored, self._manager.now_ms())
                yield
                if are_stored:
                    self._manager.figures.note(write.changes, "released")

    def _settled(self, writes: list[Write], code: ErrorCode) -> None:
        self._writing = False
        if not self.closed:
            self._arm()
            self._write_letters()
            if code in FENCED:
                self._manager.drop(self, AS_SEEN[code])
        seen = AS_SEEN.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
        for write in writes:
            if write.done is not None:
                write.done(seen)
        if not self.closed:
            self._manager.wake(self)
            self._flush()
            if self.is_idle:
                self._manager.is_idle(self)

    # Dead letters.

    def _write_letters(self) -> None:
        """Begin, if records wait for theirs."""
        core, post = self.core, self._manager.post
        if core is not None and core.runs.tallies[ARCHIVING] and not self.closed and post is not None:
            if self._letters is None:
                self._letters = LetterWriter(self, post, self._manager.figures, self._manager.timer)
            self._letters.go_on()

    def lettered(self, written: list[Run], cause: str) -> None:
        """Archive these records: their letters are stored, or the group wants none any more."""
        core = self.core
        if core is not None:
            changes = core.lettered(written)
            self._manager.figures.archived(cause, size_of(changes))
            if changes:
                self._submit(Write(changes, None))

    # Time.

    def _arm(self) -> None:
        """Have the wheel look at the earliest lock or due time. An earlier look that is set stays."""
        core = self.core
        if core is None or self.closed:
            return
        next_ms = core.timetable.next_ms
        if next_ms >= 0 and (self._armed_ms < 0 or next_ms < self._armed_ms):
            self._armed_ms = next_ms
            self._expiry.delay_ms = max(next_ms - self._manager.now_ms(), 0)
            self._manager.timer.add(self._expiry)

    def expire(self) -> None:
        """Called by the wheel."""
        core = self.core
        self._armed_ms = -1
        if core is None or self.closed:
            return
        self.timer_wakes += 1
        now_ms = self._manager.now_ms()
        before = core.runs.tallies[DEFERRED]
        changes, woken = core.expire(now_ms, self.terms)
        figures = self._manager.figures
        deferred = sum([change.last - change.first + 1 for change in changes if change.state == DEFERRED])
        figures.due += before + deferred - core.runs.tallies[DEFERRED]
        if changes:
            figures.expired += size_of(changes)
            figures.note(changes, "released by an expired lock")
            self._submit(Write(changes, None))
            self._write_letters()
        self._arm()
        if woken:
            self._manager.wake(self)

    def close(self) -> None:
        """This broker no longer leads the partition, or the state is another's: acknowledgements that are not being
        stored yet fail."""
        if self.closed:
            return
        self.closed = True
        self._expiry.cancel()
        if self._letters is not None:
            self._letters.stop()
        writes, self._writes = self._writes, []
        for write in writes:
            if write.done is not None:
                write.done(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def stored(change: Change) -> StateBatch:
    state = change.state if change.state in (ACKNOWLEDGED, ARCHIVING, ARCHIVED) else AVAILABLE
    return StateBatch(change.first, change.last, state, change.deliveries, change.due_ms)


def size_of(changes: list[Change]) -> int:
    return sum([change.last - change.first + 1 for change in changes])
