"""The loops of `ixion consume`: from the reader to standard output.

Besides copying they report what explains a silence or a gap: brokers that cannot be reached, records that retention
deleted first, and partitions that were added to the topic.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ixion.cli.consume.format import Write
from ixion.cli.interrupt import Interrupt, held_interrupt
from ixion.cli.output import note
from ixion.clients.fetched import Fetched
from ixion.clients.metadata import TopicPartition
from ixion.clients.reader import Reader
from ixion.language.records.record import Record

if TYPE_CHECKING:
    from ixion.clients import Consumer, ShareConsumer

Wanted = Callable[[TopicPartition, Record], bool]

POLL_S = 0.5
AT_ONCE = 500  # records of a queue, which are locked until they are printed
LOOK_S = 10.0  # how often to refresh metadata and look for new partitions
SOON_S = 2.0  # shorter trouble is not reported


class TroubleNotes:
    """Reports each problem once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._missed = 0
        self._said_of_s = -1.0  # when the trouble began that was last reported

    def look(self) -> None:
        reader = self._reader
        if reader.missed > self._missed:
            note(f"{reader.missed - self._missed} records were deleted before they could be read")
            self._missed = reader.missed
        since_s = reader.trouble_since_s
        if reader.trouble is not None and since_s != self._said_of_s and time.monotonic() - since_s > SOON_S:
            note(f"{reader.trouble.message} (trying again)")
            self._said_of_s = since_s


class Copy:
    """What to copy, in which format, and the progress."""

    def __init__(
        self,
        topics: list[str],
        write: Write,
        most: int | None,
        read_committed: bool,
        patience_s: float,
        wanted: Wanted | None,
    ) -> None:
        """`wanted` decides whether a record is written; None: all are. Others count neither for `most`."""
        self.topics = list(dict.fromkeys(topics))
        self.read_committed = read_committed
        self.patience_s = patience_s
        self.left = most  # None: no limit
        self.positions: dict[TopicPartition, int] = {}  # by partition: the offset after the last record written
        self._write = write
        self._wanted = wanted

    @property
    def is_done(self) -> bool:
        return self.left == 0

    def follow(self, reader: Reader, *, growing: bool) -> None:
        """Copy until `left` is reached, or for ever. `growing`: also read partitions that are added meanwhile."""
        watch = TroubleNotes(reader)
        while not self.is_done:
            self.once(reader, None)
            watch.look()
            if growing:
                self._add_new_partitions(reader)

    def to_ends(self, reader: Reader, ends: Mapping[TopicPartition, int]) -> None:
        """Copy until `left` is reached or every partition has reached its end. Raises trouble that lasts."""
        watch = TroubleNotes(reader)
        while not self.is_done and any(reader.offsets[place] < end for place, end in ends.items()):
            self.once(reader, ends)
            watch.look()
            self.raise_trouble(reader)

    def raise_trouble(self, reader: Reader) -> None:
        if reader.trouble is not None and time.monotonic() - reader.trouble_since_s > self.patience_s:
            raise reader.trouble

    def once(self, reader: Reader, ends: Mapping[TopicPartition, int] | None) -> None:
        """Write fetched records, at most `left` and only before the ends. Ctrl-C takes effect between two records."""
        arrived = reader.poll(POLL_S)
        with held_interrupt() as interrupt:
            for fetched in arrived:
                self._write_all(fetched, None if ends is None else ends[fetched.partition], interrupt)
            sys.stdout.buffer.flush()

    def take(self, consumer: Consumer, ends: Mapping[TopicPartition, int] | None, wait_s: float) -> None:
        """As `once`, for the records of a consumer."""
        records = consumer.poll(wait_s)
        with held_interrupt() as interrupt:
            for record in records:
                place = TopicPartition(record.topic, record.partition)
                end = None if ends is None else ends.get(place)
                if self.left == 0 or interrupt.wanted:
                    break
                if end is not None and record.offset >= end:
                    self.positions[place] = end
                    continue
                self._write_one(place, record.record)
            else:
                self._pass_gaps(consumer, ends)
            sys.stdout.buffer.flush()

    def take_shared(self, consumer: ShareConsumer, wait_s: float) -> None:
        """As `take`, from a queue: what was written is accepted."""
        records = consumer.poll(wait_s, AT_ONCE if self.left is None else min(self.left, AT_ONCE))
        with held_interrupt() as interrupt:
            written = []
            for record in records:
                if interrupt.wanted:
                    break
                self._write_one(TopicPartition(record.topic, record.partition), record.record)
                written.append(record)
            sys.stdout.buffer.flush()
            for record in written:
                consumer.accept(record)
            consumer.commit()

    def _pass_gaps(self, consumer: Consumer, ends: Mapping[TopicPartition, int] | None) -> None:
        """Skip control batches: a partition may end with them, and they are not printed."""
        for place in consumer.assignment():
            if place in self.positions:
                position = consumer.position(place)
                end = position if ends is None else ends.get(place, position)
                self.positions[place] = max(self.positions[place], min(position, end))

    def _write_all(self, fetched: Fetched, end: int | None, interrupt: Interrupt) -> None:
        place = fetched.partition
        for record in fetched.records():
            if self.left == 0 or interrupt.wanted:
                return
            if end is not None and record.offset >= end:
                self.positions[place] = end
                return
            self._write_one(place, record)
        self.positions[place] = fetched.next_offset

    def _write_one(self, place: TopicPartition, record: Record) -> None:
        self.positions[place] = record.offset + 1
        if self._wanted is None or self._wanted(place, record):
            sys.stdout.buffer.write(self._write(place, record))
            if self.left is not None:
                self.left -= 1

    def _add_new_partitions(self, reader: Reader) -> None:
        """Read added partitions from their beginning: all their records are new."""
        known = reader.offsets
        for topic in self.topics:
            for place in reader.partitions_of(topic):
                if place not in known:
                    reader.add(place, 0)
