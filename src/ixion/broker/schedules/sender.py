"""Sends the records of one partition of a schedule topic to its target, each once; `target` says how.

One batch is in flight at a time. Every failure is retried: a send with an unknown outcome with the same sequence
numbers, a batch that the target refused with a new producer id and one record at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ixion.broker.log.prepare import AppendInfo, Origin
from ixion.broker.replica.append import Settling, appended
from ixion.broker.replica.results import AppendResult
from ixion.broker.schedules.delivered import AT_ONCE, AT_ONCE_BYTES, add, settle
from ixion.broker.schedules.note import NO_PRODUCER, Fact, Note, Sending, write_delivered, write_sends
from ixion.broker.schedules.target import empty_batch
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.builder import BatchBuilder

if TYPE_CHECKING:
    from ixion.broker.log.config import LogConfig
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.schedules.schedule import Schedule
    from ixion.broker.schedules.targets import Targets

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1_000
FIRST_RETRY_MS: Final = 50  # usually a leader has just changed
COMMIT_TIMEOUT_MS: Final = 10_000
LAST_SEQUENCE: Final = (1 << 31) - 1
# The target has refused the batch, and would refuse it again.
REFUSED: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)

# Takes due records for a target: at most so many, in at most so many bytes.
Choose = Callable[[str, int, int], list[Note]]


class Sender:
    """Loop thread only."""

    def __init__(
        self,
        schedule: Schedule,
        targets: Targets,
        replicas: ReplicaManager,
        choose: Choose,
        clock_ms: Callable[[], int],
    ) -> None:
        self._schedule = schedule
        self._partition = schedule.partition
        self._targets = targets
        self._replicas = replicas
        self._choose = choose
        self._clock_ms = clock_ms
        self._producer_id = NO_PRODUCER  # of this leader
        self._sequence = 0
        self._most = AT_ONCE
        self.target = ""
        self._retry_ms = FIRST_RETRY_MS
        self._task: asyncio.Task[None] | None = None

    def start(self, target: str, done: Callable[[list[Note], Exception | None], None]) -> None:
        """Send due records for `target`. `done` gets the notes of the delivered records; none if nothing was due.

        If records are being sent already, they come first.
        """
        self.target = target
        self._task = asyncio.get_running_loop().create_task(self._run(done))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    @property
    def retry_ms(self) -> int:
        """How long to wait after a failure; doubles with each."""
        now_ms = self._retry_ms
        self._retry_ms = min(now_ms * 2, RETRY_MS)
        return now_ms

    async def _run(self, done: Callable[[list[Note], Exception | None], None]) -> None:
        delivered: list[Note] = []
        fault: Exception | None = None
        try:
            delivered = await self._round()
        except Exception as error:
            fault = error
        else:
            self._retry_ms = FIRST_RETRY_MS
        self._task = None
        done(delivered, fault)

    async def _round(self) -> list[Note]:
        state = self._schedule.state
        assert state is not None
        sending = state.sending
        if sending is None:
            await self._get_ready(self.target)
            notes = self._take_due()
            if not notes:
                return []
            sending = state.sending
            assert sending is not None
        else:
            # An earlier attempt, perhaps by another leader, with an unknown outcome.
            topic, producer_id, sequence = sending.topic, sending.producer_id, sending.sequence
            await self._commit(self._partition.log.end_offset)
            notes = self._notes_of(sending)
            if await self._targets.has(topic, self._partition.number, sending.target_end, producer_id, sequence):
                self._note_delivered(sending, notes, sending.target_end)
                return notes
        await self._commit(self._partition.log.end_offset)
        records = self._batch(sending, notes)
        self._note_delivered(sending, notes, await self._send(sending, records, len(notes)))
        self._most = min(self._most * 2, AT_ONCE)
        return notes

    async def _get_ready(self, topic: str) -> None:
        """Do everything that must wait, so that records can then be chosen and noted in one turn."""
        state = self._schedule.state
        assert state is not None
        if self._producer_id == NO_PRODUCER:
            self._producer_id, self._sequence = await self._targets.producer_id(), 0
        if state.target[0] != topic or state.target[1] < 0:
            state.target = (topic, await self._targets.end_of(topic, self._partition.number))

    def _take_due(self) -> list[Note]:
        """Choose due records, and write the note that they are sent."""
        partition, state = self._partition, self._schedule.state
        assert state is not None
        largest = self._largest(self._targets.check(partition, self.target))
        notes = self._choose(self.target, self._most, largest)
        if not notes:
            return []
        topic, target_end = state.target
        facts: tuple[Fact, ...] = tuple(note.fact for note in notes)
        sending = Sending(topic, self._producer_id, self._sequence, target_end, facts)
        state.sending = sending
        try:
            self._note_sends(sending)
        except BaseException:
            state.take_back()
            raise
        return notes

    def _note_sends(self, sending: Sending) -> None:
        partition, journal = self._partition, self._schedule.journal
        journal.align(partition.log.end_offset)
        try:
            journal.write(write_sends(partition.log.end_offset, partition.leader_epoch, sending))
            self._append(1)
        except BaseException:
            journal.align(partition.log.end_offset)
            raise

    def _largest(self, config: LogConfig) -> int:
        return min(AT_ONCE_BYTES, config.max_message_bytes, config.segment_bytes)

    def _append(self, count: int) -> AppendInfo:
        """Append the empty batch that the last note is about."""
        partition = self._partition
        info = partition.append(empty_batch(count, partition.leader_epoch), 1, Origin.DELIVERY)
        appended(self._replicas, partition, info)
        return info

    async def _commit(self, end_offset: int) -> None:
        """Returns when every in-sync replica has everything below `end_offset`."""
        partition = self._partition
        over: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def done(results: list[AppendResult]) -> None:
            if not over.done():
                over.set_result(results[0].code)

        result = AppendResult(partition.topic, partition.number)
        result.partition, result.required = partition, end_offset
        settling = Settling(self._replicas, COMMIT_TIMEOUT_MS, -1, done, None)
        settling.add(result)
        settling.finish()
        code = await over
        if code != ErrorCode.NONE:
            raise KafkaError(code, f"the replicas of {partition.log.name} lack the notes of a delivery: {code.name}")

    def _notes_of(self, sending: Sending) -> list[Note]:
        journal = self._schedule.journal
        found = {note.offset: note for note in journal.find_all(sorted(offset for offset, _, _ in sending.facts))}
        if len(found) < len(sending.facts):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{journal.log.name} has lost waiting records")
        return [found[offset] for offset, _, _ in sending.facts]

    def _batch(self, sending: Sending, notes: list[Note]) -> bytes:
        builder = BatchBuilder(
            producer_id=sending.producer_id, producer_epoch=0, base_sequence=sending.sequence, leader_epoch=-1
        )
        now_ms = self._clock_ms()
        for note in notes:
            add(builder, note, -1, now_ms, self._partition.topic)
        return builder.build()

    async def _send(self, sending: Sending, records: bytes, count: int) -> int:
        """Returns the end offset of the target; -1 if it is unknown."""
        state = self._schedule.state
        assert state is not None
        try:
            return await self._targets.send(sending.topic, self._partition.number, records, count)
        except KafkaError as error:
            if error.code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return -1
            if error.code in REFUSED and state.sending is sending:
                self._withdraw(sending)
            raise

    def _withdraw(self, sending: Sending) -> None:
        """Let refused records wait again, so that they can be cancelled."""
        state = self._schedule.state
        assert state is not None
        self._note_sends(sending._replace(facts=()))
        state.take_back()
        self._most = 1
        self._producer_id = NO_PRODUCER

    def _note_delivered(self, sending: Sending, notes: list[Note], target_end: int) -> None:
        """Write the note of a delivery. If this fails, the next round finds the records in the target."""
        partition, state, journal = self._partition, self._schedule.state, self._schedule.journal
        assert state is not None
        target_end = max(target_end, sending.target_end)
        journal.align(partition.log.end_offset)
        try:
            journal.write(write_delivered(partition.log.end_offset, partition.leader_epoch, sending.facts, target_end))
            self._append(len(notes))
        except BaseException:
            journal.align(partition.log.end_offset)
            raise
        state.sending = None
        state.target = (sending.topic, target_end)
        for note in notes:
            settle(state, note, -1, -1, 0)
        if sending.producer_id == self._producer_id:
            self._sequence = (sending.sequence + len(notes)) & LAST_SEQUENCE
