"""The delayed records of one partition: how they are accepted.

A producer sends a record with a header that asks for a later delivery (`records.schedule_headers`). The record waits in
the sibling of the partition (`journal`). In the partition it leaves a hole, as compaction does. So its producer gets an
ordinary offset, which is the handle to cancel it by, and idempotence and transactions work as for any other record.
When the record is due, it is appended to the partition like a new one (`delivery`).

    produced    A now, B in 5 min, C now           partition   A _ C              sibling   B (due 12:05)
    12:05       D now                              partition   A _ C D B'

If a transaction with delayed records ends, that is noted in the sibling: they wait from its commit on.
"""

from __future__ import annotations

import logging
from typing import Final

from ixion.broker.acl.line_limit import LineLimit, shown
from ixion.broker.log.checked_batch import CheckedBatch
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import AppendInfo, Origin
from ixion.broker.replica.partition import Partition
from ixion.broker.schedules.backlog import Backlog
from ixion.broker.schedules.delivery import Delivery
from ixion.broker.schedules.figures import Figures
from ixion.broker.schedules.journal import Journal
from ixion.broker.schedules.note import NO_PRODUCER, Kind, write_note
from ixion.broker.schedules.snapshot import Captured
from ixion.broker.schedules.state import State
from ixion.broker.schedules.target import check_all_wait
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batches import iter_batches
from ixion.language.records.compression import Codec
from ixion.language.records.control import ControlType, control_type
from ixion.language.records.layout import Buffer
from ixion.language.records.split import split
from ixion.language.records.validate import (
    MAX_RECORD_ERRORS,
    InvalidRecords,
    RecordError,
    TopicRules,
    Validated,
    why_refused,
)

logger = logging.getLogger(__name__)

# Delayed records in a batch: as many as librdkafka puts into one, some 50 ms of work.
MOST_IN_BATCH: Final = 10_000
LONGEST_BACKLOG: Final = 100_000  # notes to apply, at which producers must retry

# Bytes of a note and of the delivery headers around a record, which must fit into a segment with it.
MARGIN: Final = 512

Accepted = tuple[Kind, int, int, bytes, int, int]  # as `State.accept` takes it


class Schedule:
    """Loop thread only, except `flush`. Until the notes are loaded `state` is None, and appends are refused."""

    def __init__(
        self,
        partition: Partition,
        journal: Journal,
        figures: Figures,
        delivery: Delivery,
        shown: Partition,
        backlog: Backlog,
        refusals: LineLimit,
    ) -> None:
        """`shown` is the sibling as followers and clients see it; `refusals` limits what is logged about clients."""
        self.partition: Final = partition
        self.journal: Final = journal
        self.state: State | None = None
        self.delivery: Final = delivery
        self.shown: Final = shown
        self._figures = figures
        self.backlog: Final = backlog
        self._refusals = refusals
        self.captured: Captured | None = None  # a snapshot that is being written
        self._kept_out: set[int] = set()  # followers that were logged as not copying delayed records
        self._taken: list[Accepted] = []  # delayed records of the running append

    # Appending.

    def append(self, records: Buffer, acks: int, origin: Origin, checked: CheckedBatch | None = None) -> AppendInfo:
        """As `Partition.append`, for a partition with delayed records."""
        partition = self.partition
        partition.check_leads(acks)
        state = self.state
        if state is None:
            raise KafkaError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"the delayed records of {partition.log.name} are being loaded"
            )
        self.journal.align(partition.log.end_offset)
        if origin == Origin.CLIENT and partition.log.config.delays_records:
            if len(state.backlog) > LONGEST_BACKLOG:
                raise self._busy(state)
            return self._append_client(state, records, checked)
        if origin in (Origin.COORDINATOR, Origin.RAISED_MARKER) and state.open:
            return self._append_markers(state, records, acks, origin)
        return partition.append(records, acks, origin, checked)

    def _busy(self, state: State) -> KafkaError:
        """A retriable error: the backlog must be applied first."""
        reason = f"{self.partition.log.name} has {len(state.backlog)} delayed records to apply first"
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, reason)

    def _append_client(self, state: State, records: Buffer, checked: CheckedBatch | None) -> AppendInfo:
        partition = self.partition
        self._taken = []
        log = partition.log
        try:
            try:
                info = log.append_scheduled(records, partition.leader_epoch, self, checked)
            except KafkaError:
                if partition.log is log:
                    raise
                # The log moved to another directory while we waited for its lock; nothing was appended.
                info = partition.log.append_scheduled(records, partition.leader_epoch, self, checked)
        except InvalidRecords as refusal:
            self._figures.rejected += len(refusal.record_errors)
            self._log_refusal(refusal.message)
            raise
        except KafkaError as unfit:
            if unfit.code == ErrorCode.INVALID_RECORD:
                self._log_refusal(unfit.message)
            self.journal.align(partition.log.end_offset)
            raise
        except BaseException:
            self.journal.align(partition.log.end_offset)
            raise
        self._count(state, self._taken)
        return info

    def _log_refusal(self, reason: str) -> None:
        """Many clients show only the error code, and drop the message of the answer: the log has it as well."""
        left_out = self._refusals.take()
        if left_out is not None:
            more = f" ({left_out} more refusals before this one are not logged)" if left_out else ""
            logger.warning("a produce to %s was refused: %s%s", self.partition.log.name, shown(reason), more)

    def _count(self, state: State, taken: list[Accepted]) -> None:
        for kind, offset, due_ms, name, size, producer_id in taken:
            state.queue(kind, offset, due_ms, name, size, producer_id)
            self._figures.accepted += kind != Kind.CANCELS
        if taken:
            self.backlog.advance(state)

    def take(self, checked: Validated, first_offset: int, rules: TopicRules) -> bytes:
        """Called by the log, under its lock, when it knows the offsets of the batch."""
        state = self.state
        assert state is not None
        batch = checked.batch
        config = self.partition.log.config
        codec: Codec = batch.codec if rules.codec is None else rules.codec
        count = sum([wish.is_taken for wish in checked.wishes])
        if count > MOST_IN_BATCH:
            reason = f"a batch has {count} delayed records, {MOST_IN_BATCH} are allowed"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, reason)
        left, records = checked.split or split(batch, checked.wishes, codec, rules.level)
        wishes = [wish for wish in checked.wishes if wish.is_taken]
        largest = min(config.max_message_bytes, config.segment_bytes) - MARGIN
        if config.delivery_delay_target:
            goes_to = self.delivery.targets().check(self.partition, config.delivery_delay_target)
            check_all_wait(batch, checked.wishes, checked.keyless if goes_to.compact else [])
            largest = min(largest, min(goes_to.max_message_bytes, goes_to.segment_bytes) - MARGIN)
            if checked.split is None:
                left, _ = split(batch, [], codec, rules.level)
        if wishes:
            self._check_copies()
        producer_id = int(batch.producer_id) if batch.is_transactional else NO_PRODUCER
        notes: list[bytes] = []
        refused: list[RecordError] = []
        count, size = state.count, state.size
        for wish, record in zip(wishes, records, strict=True):
            kind = Kind.CANCELS if wish.cancel else Kind.RECURS if wish.recurs else Kind.WAITS
            record.offset += first_offset
            note = write_note(
                kind,
                record.offset,
                self.partition.leader_epoch,
                due_ms=wish.due_ms,
                producer_id=producer_id,
                record=record,
                target=config.delivery_delay_target,
            )
            count += 1
            size += len(note)
            reason = ""
            if len(note) > largest:
                reason = f"a record of {len(note)} bytes is too large to be delivered later, {largest} are allowed"
            elif count > config.delivery_delay_pending_max and not wish.cancel:
                reason = (
                    f"{state.count} records wait, delivery.delay.pending.max is {config.delivery_delay_pending_max}"
                )
            elif size > config.delivery_delay_pending_bytes_max and not wish.cancel:
                limit = config.delivery_delay_pending_bytes_max
                reason = f"{state.size} bytes wait, delivery.delay.pending.bytes.max is {limit}"
            if reason and state.backlog:
                raise self._busy(state)  # the backlog may replace or cancel some of the waiting records
            if reason:
                refused.append(RecordError(batch_index=int(wish.index), message=reason))
                if len(refused) == MAX_RECORD_ERRORS:
                    break
            notes.append(note)
            self._taken.append(
                (kind, int(record.offset), wish.due_ms, wish.cancel or wish.schedule_id, len(note), producer_id)
            )
        if refused:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, why_refused(refused), tuple(refused))
        if sum(map(len, notes)) > self.journal.log.config.segment_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "the delayed records of a batch are larger than a segment")
        if notes:
            self.journal.write(b"".join(notes))
        return left

    def _check_copies(self) -> None:
        """Every in-sync replica must copy delayed records: otherwise, as a leader, it would have the hole but not the
        record.

        An ixion follower fetches the sibling with its first request; until then clients retry.
        """
        partition = self.partition
        without = [number for number in partition.isr if number != partition.node_id and not self.copies(number)]
        if without:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{partition.log.name} takes no delayed records: broker {without[0]} is in sync and does not copy them",
            )

    def copies(self, broker_id: int) -> bool:
        """Whether a follower has fetched the sibling from this leader."""
        follower = self.shown.followers.get(broker_id)
        return follower is not None and follower.end_offset >= 0

    def may_join(self, broker_id: int) -> bool:
        state = self.state
        if self.copies(broker_id) or (state is not None and state.count == 0):
            return True
        if broker_id not in self._kept_out:
            self._kept_out.add(broker_id)
            name = self.partition.log.name
            logger.warning("broker %d does not copy the delayed records of %s, and stays out of sync", broker_id, name)
        return False

    def _append_markers(self, state: State, records: Buffer, acks: int, origin: Origin) -> AppendInfo:
        log = self.partition.log
        offset = log.end_offset
        ended: list[tuple[int, bool]] = []
        notes: list[bytes] = []
        for view in iter_batches(records):
            producer_id = int(view.producer_id)
            is_marker = view.is_control and producer_id in state.open
            marker = control_type(view) if is_marker else ControlType.UNKNOWN
            if marker in (ControlType.COMMIT, ControlType.ABORT):
                commits = marker == ControlType.COMMIT
                kind = Kind.COMMITS if commits else Kind.ABORTS
                notes.append(write_note(kind, offset, self.partition.leader_epoch, producer_id=producer_id))
                ended.append((producer_id, commits))
            offset += int(view.last_offset_delta) + 1
        try:
            if notes:
                self.journal.write(b"".join(notes))
            info = self.partition.append(records, acks, origin)
        except BaseException:
            self.journal.align(self.partition.log.end_offset)
            raise
        before = state.aborted
        for producer_id, commits in ended:
            state.end_transaction(producer_id, commits)
        self._figures.aborted += state.aborted - before
        if ended:
            self.backlog.advance(state)
        return info

    def sibling_moved(self, log: Log) -> None:
        self.journal.log = log
        self.shown.log = log

    def flush(self, log: Log) -> None:
        """Flush the sibling, then the partition, which refers to it. Blocks; for a worker thread."""
        sibling = self.journal.log
        if not sibling.closed:
            sibling.flush()
        log.flush()
