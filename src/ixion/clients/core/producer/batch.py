"""The records of one partition that are sent together, and their outcome.

A batch is *open* while records are added, *sealed* when it waits to be sent, *built* when it has its producer, epoch
and sequence, and *settled* when it has an offset or an error. It is settled exactly once. Its callbacks are then due,
in the order of its records.

Bytes are never reused: a batch that times out while its request is being written or answered keeps its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, final

from ixion._native import i64
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.layout import NO_SEQUENCE, add_to_sequence


class Delivery(NamedTuple):
    """The outcome of a record: its offset (-1 with acks=0, or for a duplicate of unknown offset), or an error."""

    place: TopicPartition
    offset: int
    error: KafkaError | None

    @property
    def topic(self) -> str:
        return self.place.topic

    @property
    def partition(self) -> int:
        """Its number, as of a record that a consumer returns."""
        return self.place.partition


OnDelivery = Callable[[Delivery], None]


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


NOBODY = ProducerIdentity(-1, -1)


@final
class Batch:
    def __init__(self, place: TopicPartition, builder: BatchBuilder, born_s: float, reserved: i64) -> None:
        self.place = place
        self.builder: BatchBuilder | None = builder  # until it is built
        self.data: bytes | bytearray = b""
        self.count: i64 = 0
        self.born_s = born_s
        self.reserved: i64 = reserved  # bytes of buffer.memory
        self.sequence: i64 = NO_SEQUENCE
        self.identity = NOBODY
        self.attempts: i64 = 0
        self.flight: i64 = 0  # number in the order of sending, which a retry must keep
        self.is_in_doubt = False  # an attempt got no answer, so it may have been written
        self.is_done = False
        self.base_offset: i64 = -1
        self.error: KafkaError | None = None
        self.wishes: list[tuple[int, OnDelivery]] = []  # index in the batch, callback
        self.watchers: list[Callable[[], None]] = []  # called when it is settled
        self.parts: list[tuple[int, Batch]] = []  # index of the first record, if it had to be split

    @property
    def size(self) -> i64:
        """In bytes; before compression as long as it is not built."""
        builder = self.builder
        return len(self.data) if builder is None else builder.size_in_bytes

    @property
    def next_sequence(self) -> int:
        return add_to_sequence(self.sequence, self.count)

    def build(self, identity: ProducerIdentity, sequence: i64) -> None:
        builder = self.builder
        assert builder is not None
        builder.name_producer(identity.producer_id, identity.epoch, sequence)
        self.data = builder.build()
        self.builder = None
        self.identity = identity
        self.sequence = sequence

    def settle(self, base_offset: i64, error: KafkaError | None, due: Due) -> None:
        """Set the outcome. A second call changes nothing."""
        if self.is_done:
            return
        self.is_done = True
        self.base_offset = base_offset
        self.error = error
        for index, wish in self.wishes:
            due.append((wish, self.delivery(index)))
        self.wishes = []
        watchers = self.watchers
        self.watchers = []
        for watcher in watchers:
            watcher()

    def is_settled(self) -> bool:
        """Whether the outcome of all its records is known, also of those that moved to other batches."""
        if not self.parts:
            return self.is_done
        return all(part.is_settled() for _, part in self.parts)

    def delivery(self, index: i64) -> Delivery:
        """The outcome of one record of a settled batch."""
        for start, part in reversed(self.parts):
            if index >= start:
                return part.delivery(index - start)
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        return Delivery(self.place, offset, self.error)

    def part_of(self, index: i64) -> Batch:
        """The batch that the record is in now."""
        for start, part in reversed(self.parts):
            if index >= start:
                return part.part_of(index - start)
        return self

    def split(self, max_bytes: int, transactional: bool = False) -> list[Batch]:
        """The same records in smaller batches, none larger than `max_bytes` unless it has one record."""
        assert self.builder is None
        view = BatchView(bytes(self.data))
        found: list[Batch] = []
        starts: list[int] = []
        for number, record in enumerate(view):
            key = None if record.key is None else bytes(record.key)
            value = None if record.value is None else bytes(record.value)
            last = found[-1].builder if found else None
            if last is None or not last.append(key, value, record.headers, record.timestamp):
                last = BatchBuilder(max_bytes=max_bytes, codec=view.codec, is_transactional=transactional)
                last.append(key, value, record.headers, record.timestamp)
                found.append(Batch(self.place, last, self.born_s, 0))
                starts.append(number)
            found[-1].count += 1
        for index, wish in self.wishes:
            place = max(at for at, start in enumerate(starts) if start <= index)
            found[place].wishes.append((index - starts[place], wish))
        found[0].reserved = self.reserved
        self.reserved = 0
        self.wishes = []
        self.parts = list(zip(starts, found, strict=True))
        self.is_done = True
        for part in found:
            part.watchers = list(self.watchers)
        self.watchers = []
        return found


# Callbacks that are due. A batch is settled first and its callbacks run afterwards, so that a callback that raises,
# sends or flushes finds the producer in a consistent state.
Due = deque[tuple[OnDelivery, Delivery]]
