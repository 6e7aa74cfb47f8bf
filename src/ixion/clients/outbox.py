"""The batches of one partition on their way out, in an order that no retry disturbs.

A batch is open (records are still added), waiting (sealed), flying (sent, not answered) or settled. What comes back
with an error that a retry can mend goes to the head of those that wait, but only when nothing of this partition flies
any more: so the order stays, whichever of the flying ones failed.

    waiting [5 6]   flying [2 3 4]      2 fails: the leader moved
    waiting [5 6]   flying [3 4]        returned [2]        3 and 4 follow: their sequence has a gap
    waiting [2 3 4 5 6]                                     sent again from 2 on, one at a time as far as 4

What is sent again flies alone. It may have been written the first time, and a broker remembers only the last five
batches of a producer: if others flew past it, it would no longer be known again as written.

An idempotent producer numbers the records of a partition. A batch that the broker refuses for good leaves a gap, which
no later batch may show: when nothing flies any more, all that is left is numbered anew, on from the last number that
was acknowledged.

A broker that knows nothing of a producer takes any number as its first. So nothing flies behind the very first batch
of a partition: if that one failed, the next would take its place, and it could never be written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ixion.clients.metadata import TopicPartition
from ixion.model.errors import KafkaError
from ixion.records.builder import BatchBuilder, Headers
from ixion.records.compression import Codec
from ixion.records.layout import MAX_I32, NO_SEQUENCE, add_to_sequence
from ixion.records.patch import patch_producer


class Delivery(NamedTuple):
    """What became of a record: its offset (-1 with acks=0, or if only its being a duplicate is known), or an error."""

    partition: TopicPartition
    offset: int
    error: KafkaError | None


OnDelivery = Callable[[Delivery], None]
# Callbacks that are due. A batch is settled first and its callbacks run afterwards, so that one that raises, or that
# sends or flushes itself, meets a producer in order.
Due = deque[tuple[OnDelivery, Delivery]]


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


NOBODY = ProducerIdentity(-1, -1)
HALF: Final = 1 << 30  # of all sequence numbers: nothing that is under way is so far from anything else


class Batch:
    """Sealed: bytes to send, and who wants to hear of them."""

    def __init__(
        self, data: bytes | bytearray, count: int, sequence: int, born_s: float, wishes: list[tuple[int, OnDelivery]]
    ) -> None:
        self.data = data
        self.count = count
        self.sequence = sequence
        self.born_s = born_s  # on the monotonic clock
        self.attempts = 0
        self._wishes = wishes  # index in the batch, callback

    @property
    def next_sequence(self) -> int:
        return add_to_sequence(self.sequence, self.count)

    def settle(self, partition: TopicPartition, base_offset: int, error: KafkaError | None, due: Due) -> None:
        for index, wish in self._wishes:
            due.append((wish, Delivery(partition, base_offset + index if base_offset >= 0 else -1, error)))
        self._wishes = []


class Outbox:
    def __init__(
        self,
        partition: TopicPartition,
        identity: ProducerIdentity,
        batch_bytes: int,
        codec: Codec,
        level: int | None,
        due: Due,
    ) -> None:
        self.partition = partition
        self.due = due
        self.identity = identity
        self.batch_bytes = batch_bytes
        self.codec = codec
        self.level = level
        self.builder: BatchBuilder | None = None  # the open batch
        self.born_s = 0.0  # when it was begun
        self.waiting: deque[Batch] = deque()
        self.flying: deque[Batch] = deque()
        self.size_in_bytes = 0  # of all that is sealed and not settled
        self.not_before_s = 0.0  # the pause before a retry
        self._wishes: list[tuple[int, OnDelivery]] = []
        self._returned: list[Batch] = []
        self._next_sequence = 0 if identity is not NOBODY else NO_SEQUENCE
        self._acknowledged = self._next_sequence  # the sequence that the broker expects next
        self._has_gap = False
        self._is_known = identity is NOBODY  # whether the broker has numbers of this producer to compare with

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        wish: OnDelivery | None,
        now_s: float,
    ) -> bool:
        """Add a record to the open batch, or begin one with it; False, and nothing is changed, if that one is full."""
        builder = self.builder
        if builder is None:
            builder = self.builder = BatchBuilder(
                max_bytes=self.batch_bytes,
                codec=self.codec,
                level=self.level,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                base_sequence=self._next_sequence,
            )
            self.born_s = now_s
        if not builder.append(key, value, headers, timestamp):
            return False
        if wish is not None:
            self._wishes.append((builder.count - 1, wish))
        return True

    def seal(self) -> None:
        """End the open batch, if there is one."""
        builder = self.builder
        if builder is None:
            return
        batch = Batch(builder.build(), builder.count, self._next_sequence, self.born_s, self._wishes)
        self.waiting.append(batch)
        self.size_in_bytes += len(batch.data)
        self.builder = None
        self._wishes = []
        if self._next_sequence != NO_SEQUENCE:
            self._next_sequence = batch.next_sequence

    @property
    def is_idle(self) -> bool:
        return self.builder is None and not self.waiting and not self.flying and not self._returned

    def may_send(self, now_s: float, most_flying: int) -> bool:
        if not self.waiting or self._returned or self._has_gap:
            return False
        again = self.waiting[0].attempts > 0 or (self.flying and self.flying[-1].attempts > 1)
        most = most_flying if self._is_known and not again else 1
        return len(self.flying) < most and now_s >= self.not_before_s

    def take(self) -> Batch:
        batch = self.waiting.popleft()
        batch.attempts += 1
        self.flying.append(batch)
        return batch

    def acknowledge(self, batch: Batch, base_offset: int) -> None:
        self.flying.remove(batch)
        if batch.sequence != NO_SEQUENCE:
            self._is_known = True
            if is_after(batch.next_sequence, self._acknowledged):  # the answer to a duplicate may come late
                self._acknowledged = batch.next_sequence
        self.size_in_bytes -= len(batch.data)
        batch.settle(self.partition, base_offset, None, self.due)
        self._land()

    def give_back(self, batch: Batch, not_before_s: float) -> None:
        """It failed in a way that a retry can mend."""
        self.flying.remove(batch)
        self._returned.append(batch)
        self.not_before_s = not_before_s
        self._land()

    def reclaim(self) -> None:
        """No request is under way any more, so what flies will never be answered: an interrupt came in between."""
        for batch in list(self.flying):
            self.give_back(batch, self.not_before_s)

    def refuse(self, batch: Batch, error: KafkaError) -> None:
        """The broker will never take it, or its time is up before it was ever sent."""
        if batch in self.flying:
            self.flying.remove(batch)
        else:
            self.waiting.remove(batch)
        self._has_gap = batch.sequence != NO_SEQUENCE
        self.size_in_bytes -= len(batch.data)
        batch.settle(self.partition, -1, error, self.due)
        self._land()

    def is_first(self, batch: Batch) -> bool:
        """Whether nothing before it is unsettled, so that a gap in the sequence is not of our making."""
        return not self._returned and not self._has_gap and self.flying[0] is batch

    def abandon(self, error: KafkaError) -> None:
        """Fail all that is left."""
        self.seal()
        left = [*self.flying, *self._returned, *self.waiting]
        self.flying.clear()
        self._returned.clear()
        self.waiting.clear()
        self.size_in_bytes = 0
        for batch in left:
            batch.settle(self.partition, -1, error, self.due)

    def _land(self) -> None:
        """When nothing flies any more, what came back goes to the head and a gap is closed."""
        if self.flying:
            return
        if self._returned:
            self.waiting.extendleft(reversed(self._returned))
            self._returned.clear()
        if self._has_gap:
            self._has_gap = False
            self.seal()
            self._number_anew()

    def _number_anew(self) -> None:
        sequence = self._acknowledged
        for batch in self.waiting:
            batch.data = bytearray(batch.data)
            patch_producer(batch.data, 0, self.identity.producer_id, self.identity.epoch, sequence)
            batch.sequence = sequence
            sequence = batch.next_sequence
        self._next_sequence = sequence


def is_after(sequence: int, other: int) -> bool:
    """Whether a sequence number comes after another; they wrap from 2**31 - 1 to 0."""
    return 0 < (sequence - other) & MAX_I32 < HALF
