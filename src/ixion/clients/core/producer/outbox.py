"""The batches of one partition on their way out, in an order that no retry disturbs.

A batch is open (records are still added), waiting (sealed), flying (sent, not answered) or settled. A batch that fails
with a retriable error goes back to the head of the waiting ones, but only when nothing of this partition flies any
more: so the order stays, whichever of the flying batches failed.

    waiting [5 6]   flying [2 3 4]      2 fails: the leader moved
    waiting [5 6]   flying [3 4]        returned [2]        3 and 4 follow: their sequence has a gap
    waiting [2 3 4 5 6]                                     sent again from 2 on, one at a time as far as 4

A batch that is sent again flies alone. It may have been written the first time, and a broker remembers only the last
five batches of a producer: if others flew past it, the broker would no longer recognise it as a duplicate.

An idempotent producer numbers the records of a partition when it first sends them. Three events disturb the numbers:

A  A batch is refused for good: no later batch may show the gap. When nothing flies any more, the batches that were sent
   are renumbered, from the last acknowledged number on.
B  A batch fails while it is in doubt (its time is up, and an attempt got no answer). The next batch shows its outcome:
   if the broker takes it, the first was written. If it answers "out of order", the first was not, and may still arrive
   over an old connection. The same numbers must never be used twice, so the epoch is raised (C).
C  A new epoch: numbers start again at 0, as soon as no batch of the old epoch is in doubt.

A broker that does not know a producer takes any number as its first. So nothing flies behind the very first batch of a
partition: if that one failed, the next would take its number, and the first could never be written.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from ixion._native import i64
from ixion.clients.core.connection import NEVER
from ixion.clients.core.producer.batch import NOBODY, Batch, Due, ProducerIdentity
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError
from ixion.language.records.builder import BatchBuilder, Headers
from ixion.language.records.compression import Codec
from ixion.language.records.layout import MAX_I32, NO_SEQUENCE, add_to_sequence
from ixion.language.records.patch import patch_producer

HALF: Final = 1 << 30  # of all sequence numbers: numbers in flight are never that far apart


@final
class Outbox:
    def __init__(
        self,
        place: TopicPartition,
        batch_bytes: int,
        codec: Codec,
        level: int | None,
        due: Due,
        transactional: bool = False,
    ) -> None:
        self.place = place
        self.due = due
        self.batch_bytes = batch_bytes
        self.codec = codec
        self.level = level
        self.transactional = transactional
        self.open: Batch | None = None
        self.waiting: deque[Batch] = deque()
        self.flying: deque[Batch] = deque()
        self.not_before_s = 0.0  # the pause before a retry
        self.identity: ProducerIdentity = NOBODY  # the identity that its numbers belong to
        self.wants_epoch = False  # C: nothing can be sent before the producer has a new epoch
        self.is_active = False  # whether its owner has it in the list of those that hold batches
        self._returned: list[Batch] = []
        self._next_sequence: i64 = 0
        self._flights: i64 = 0
        self._acknowledged: i64 = 0  # the sequence that the broker expects next
        self._has_gap = False  # A
        self._is_unresolved = False  # B
        self._is_known = False  # whether the broker has numbers of this producer to compare with

    def begin(self, now_s: float, reserved: i64) -> Batch:
        """Open a batch."""
        builder = BatchBuilder(
            max_bytes=self.batch_bytes, codec=self.codec, level=self.level, is_transactional=self.transactional
        )
        batch = Batch(self.place, builder, now_s, reserved)
        self.open = batch
        return batch

    def append(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp: i64) -> bool:
        """Add a record to the open batch. False, changing nothing, if it is full."""
        batch = self.open
        assert batch is not None
        builder = batch.builder
        assert builder is not None
        if not builder.append(key, value, headers, timestamp):
            return False
        batch.count += 1
        return True

    def seal(self) -> None:
        """End the open batch, if there is one."""
        batch = self.open
        if batch is not None:
            if batch.builder is not None:
                batch.builder.end()
            self.waiting.append(batch)
            self.open = None

    @property
    def is_idle(self) -> bool:
        return self.open is None and not self.waiting and not self.flying and not self._returned

    @property
    def queue_length(self) -> int:
        return len(self.waiting) + len(self.flying) + len(self._returned) + (1 if self.open is not None else 0)

    def may_send(self, most_flying: i64, identity: ProducerIdentity | None) -> bool:
        """Whether the first waiting batch may be sent, after the pause. `identity` is None without idempotence."""
        if not self.waiting or self._returned or self._has_gap:
            return False
        if identity is None:
            return len(self.flying) < most_flying
        head = self.waiting[0]
        if self.wants_epoch and not head.is_in_doubt:
            return False
        if not self.flying and self.identity is not identity and not head.is_in_doubt:
            self.adopt(identity)
        if self.identity is not identity and not head.is_in_doubt:
            return False  # batches of the old epoch fly; the next batch starts the new epoch
        again = head.attempts > 0 or (len(self.flying) > 0 and self.flying[-1].attempts > 1)
        if again or not self._is_known or self._is_unresolved:
            return not self.flying
        return len(self.flying) < most_flying

    def take(self) -> Batch:
        """Take the first waiting batch, built and counted as sent."""
        batch = self.waiting[0]
        if batch.builder is not None:
            if self.identity is NOBODY:
                batch.build(NOBODY, NO_SEQUENCE)
            else:
                batch.build(self.identity, self._next_sequence)
                self._next_sequence = batch.next_sequence
        batch.attempts += 1
        self._flights += 1
        batch.flight = self._flights
        self.flying.append(batch)
        self.waiting.popleft()
        return batch

    def acknowledge(self, batch: Batch, base_offset: int) -> None:
        self.flying.remove(batch)
        if batch.sequence != NO_SEQUENCE and batch.identity is self.identity:
            self._is_known = True
            self._is_unresolved = False
            if is_after(batch.next_sequence, self._acknowledged):  # the answer to a duplicate may come late
                self._acknowledged = batch.next_sequence
        batch.settle(base_offset, None, self.due)
        self._land()

    def give_back(self, batch: Batch, not_before_s: float, in_doubt: bool) -> None:
        """Put a batch back after a retriable error. `in_doubt`: it may have been written anyway."""
        self.flying.remove(batch)
        batch.is_in_doubt = batch.is_in_doubt or in_doubt
        if batch.is_done:  # its time is up
            self._give_up(batch)
        else:
            self._returned.append(batch)
            self.not_before_s = not_before_s
        self._land()

    def refuse(self, batch: Batch, error: KafkaError) -> None:
        """Fail a batch that the broker will never take."""
        self.flying.remove(batch)
        self._give_up(batch)
        batch.settle(-1, error, self.due)
        self._land()

    def refuse_and_restart(self, batch: Batch, error: KafkaError) -> None:
        """The broker has other sequence numbers than we: fail the batch, and give those behind it a new epoch."""
        self.flying.remove(batch)
        self.wants_epoch = True
        self._clear_doubts()
        batch.settle(-1, error, self.due)
        self._land()

    def expire(self, batch: Batch, error: KafkaError) -> None:
        """Fail a batch whose time is up. A flying one keeps its place until its request ends."""
        batch.settle(-1, error, self.due)
        if batch in self.flying:
            return
        if batch in self._returned:
            self._returned.remove(batch)
        else:
            self.waiting.remove(batch)
        self._give_up(batch)
        self._land()

    def returned(self) -> list[Batch]:
        """Batches that wait for the others in flight before they are sent again."""
        return list(self._returned)

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """Replace a batch that was too large by smaller ones at the head, renumbered."""
        self.flying.remove(batch)
        if batch.sequence != NO_SEQUENCE:
            self._has_gap = True
        for part in parts:
            part.flight = batch.flight
        self._returned.extend(parts)
        self._land()

    def resend_in_new_epoch(self, batch: Batch) -> None:
        """Out of order behind a batch in doubt (B): neither of the two was written. Send this in a new epoch."""
        self.flying.remove(batch)
        self._returned.append(batch)
        self.wants_epoch = True
        self._clear_doubts()
        self._land()

    def is_first(self, batch: Batch) -> bool:
        """Whether all batches before it are settled, so that a gap in the sequence is not caused by them."""
        return not self._returned and not self._has_gap and self.flying[0] is batch

    @property
    def is_unresolved(self) -> bool:
        return self._is_unresolved

    @property
    def can_change_epoch(self) -> bool:
        """C: whether nothing of the old epoch is in doubt any more."""
        return not self.flying and not (self.waiting and self.waiting[0].is_in_doubt)

    def reclaim(self) -> None:
        """Take flying batches back after an interrupt: their requests are gone, so no answer will come."""
        flying = list(self.flying)
        if flying and self.waiting and self.waiting[0] is flying[-1]:
            self.waiting.popleft()  # the interrupt came inside `take`
        for batch in flying:
            self.give_back(batch, self.not_before_s, True)

    def drop_unsent(self, error: KafkaError) -> list[Batch]:
        """Fail batches that do not fly, because the transaction is aborted."""
        self.seal()
        left = [*sorted(self._returned, key=_flight), *self.waiting]
        self._returned.clear()
        self.waiting.clear()
        for batch in left:
            if batch.sequence != NO_SEQUENCE:
                self.wants_epoch = True
            batch.settle(-1, error, self.due)
        return left

    @property
    def oldest_s(self) -> float:
        """When the first unsettled record was added; NEVER if all are settled. Only the first of the waiting batches is
        checked, because thousands may wait."""
        for batch in self.flying:
            if not batch.is_done:
                return batch.born_s
        for batch in self._returned:
            if not batch.is_done:
                return batch.born_s
        for batch in self.waiting:
            if not batch.is_done:
                return batch.born_s
        return NEVER if self.open is None else self.open.born_s

    def unsettled(self) -> list[Batch]:
        """Unsettled batches, in the order of their records."""
        left = [*sorted([*self.flying, *self._returned], key=_flight), *self.waiting]
        return [*left, self.open] if self.open is not None else left

    def abandon(self, error: KafkaError) -> list[Batch]:
        """Fail and forget all remaining batches."""
        left = self.unsettled()
        self.open = None
        self.flying.clear()
        self._returned.clear()
        self.waiting.clear()
        for batch in left:
            batch.settle(-1, error, self.due)
        return left

    def _give_up(self, batch: Batch) -> None:
        if batch.sequence == NO_SEQUENCE:
            return
        if batch.is_in_doubt:
            self._is_unresolved = True
        else:
            self._has_gap = True

    def _land(self) -> None:
        """When nothing flies any more, put returned batches back at the head and close a gap.

        Batches may come back in another order than they were sent: after a leader moved, the old and the new leader may
        each have one.
        """
        if self.flying:
            return
        if self._returned:
            self._returned.sort(key=_flight)
            self.waiting.extendleft(reversed(self._returned))
            self._returned.clear()
        if self._has_gap:
            self._has_gap = False
            self._close_gap()

    def _close_gap(self) -> None:
        """Close the gap (A). A batch in doubt must not get another number: a late copy could be taken for its
        successor.

        The broker cannot have written it behind the gap, so it continues in a new epoch (C).
        """
        if self._is_unresolved:
            self.wants_epoch = True  # B: more than the last acknowledged number may have been written
            return
        sequence: i64 = self._acknowledged
        for batch in self.waiting:
            if self._is_before_gap(batch):
                continue  # the broker has it, and recognises its number
            if batch.is_in_doubt and batch.sequence != sequence:
                batch.is_in_doubt = False
                self.wants_epoch = True
            sequence = add_to_sequence(sequence, batch.count)
        if not self.wants_epoch:
            self._number_anew(self.identity, self._acknowledged)

    def _is_before_gap(self, batch: Batch) -> bool:
        return batch.sequence != NO_SEQUENCE and is_after(self._acknowledged, batch.sequence)

    def _clear_doubts(self) -> None:
        """After "out of order" nothing later was written: later batches are no longer in doubt."""
        for batch in self._returned:
            batch.is_in_doubt = False
        for waiting in self.waiting:
            waiting.is_in_doubt = False

    def adopt(self, identity: ProducerIdentity) -> None:
        """C: continue in a new epoch."""
        self.identity = identity
        self.wants_epoch = False
        self._is_unresolved = False
        self._is_known = False
        self._acknowledged = 0
        self._number_anew(identity, 0)

    def _number_anew(self, identity: ProducerIdentity, sequence: i64) -> None:
        """Renumber batches that were sent, and those before them, which are parts of a split batch."""
        left = sum(1 for batch in self.waiting if batch.builder is None)
        for batch in self.waiting:
            if left == 0:
                break
            if batch.builder is None:
                left -= 1
                if batch.identity is identity and self._is_before_gap(batch):
                    continue
                batch.data = bytearray(batch.data)
                patch_producer(batch.data, 0, identity.producer_id, identity.epoch, int(sequence))
                batch.identity = identity
                batch.sequence = sequence
            else:
                batch.build(identity, sequence)
            sequence = batch.next_sequence
        self._next_sequence = sequence


def _flight(batch: Batch) -> int:
    return batch.flight


def is_after(sequence: int, other: int) -> bool:
    """Whether a sequence number comes after another; they wrap from 2**31 - 1 to 0."""
    return 0 < (sequence - other) & MAX_I32 < HALF
