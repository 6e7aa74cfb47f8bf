"""Fetches that wait to be handed out: completed ones first, the half-read one kept, nothing twice or skipped."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ixion.clients.core.consumer.buffer import Buffer
from ixion.clients.core.consumer.subscription import NotAssignedError, Subscription
from ixion.clients.fetched import Fetched
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.columns import Columns

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def fetched(place: TopicPartition, start: int, end: int, *, gap: int = 0) -> Fetched:
    """Offsets from `start` to before `end`, and with a `gap` a marker behind so many more."""
    builder = BatchBuilder(base_offset=start)
    for offset in range(start, end):
        builder.append(None, b"%d" % offset)
    batches = [BatchView(builder.build())]
    if gap:
        marker = BatchBuilder(base_offset=end + gap - 1, is_control=True, is_transactional=True, producer_id=1)
        marker.append(b"\0\0\0\1", b"\0\0\0\0\0\0")
        batches.append(BatchView(marker.build()))
    return Fetched(place, start, batches, end, None)


def buffer_of(*found: Fetched) -> tuple[Buffer, Subscription]:
    subscription = Subscription()
    subscription.assign([A, B])
    subscription.place(A, 0)
    subscription.place(B, 0)
    buffer = Buffer(subscription)
    for each in found:
        buffer.add(each)
    return buffer, subscription


def taken(buffer: Buffer, most: int) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in buffer.take(most)]


def test_step_7_the_example_of_the_module() -> None:
    buffer, subscription = buffer_of(fetched(A, 0, 10), fetched(B, 0, 5))
    assert taken(buffer, 6) == [(0, offset) for offset in range(6)]
    assert subscription.positions() == {A: 6, B: 0}
    assert taken(buffer, 6) == [(0, 6), (0, 7), (0, 8), (0, 9), (1, 0), (1, 1)]
    assert taken(buffer, 6) == [(1, 2), (1, 3), (1, 4)]
    assert taken(buffer, 6) == []
    assert subscription.positions() == {A: 10, B: 5}


def test_the_position_moves_past_records_that_are_not_returned() -> None:
    buffer, subscription = buffer_of(fetched(A, 0, 2, gap=3))
    assert taken(buffer, 9) == [(0, 0), (0, 1)]
    assert subscription.position(A) == 5


def test_a_paused_partition_waits() -> None:
    buffer, subscription = buffer_of(fetched(A, 0, 4), fetched(B, 0, 2))
    assert taken(buffer, 1) == [(0, 0)]
    subscription.pause(A)
    assert taken(buffer, 9) == [(1, 0), (1, 1)]
    assert buffer.next_offset(A) == 4
    subscription.resume(A)
    assert taken(buffer, 9) == [(0, 1), (0, 2), (0, 3)]
    assert buffer.next_offset(A) is None


def test_columns_and_records_take_turns() -> None:
    buffer, subscription = buffer_of(fetched(A, 0, 6), fetched(A, 6, 8))
    assert taken(buffer, 2) == [(0, 0), (0, 1)]
    found = buffer.take_columns()
    assert found is not None
    assert list(found[1].offsets) == [2, 3, 4, 5]
    assert subscription.position(A) == 6
    assert taken(buffer, 9) == [(0, 6), (0, 7)]
    assert buffer.take_columns() is None


def test_a_damaged_batch_raises_when_it_is_reached_and_again() -> None:
    good, bad = fetched(A, 0, 2), fetched(A, 2, 4)
    data = bytearray(bad._batches[0].buffer)
    data[-1] ^= 1
    broken = Fetched(A, 2, [BatchView(bytes(data))], 4, None)
    buffer, subscription = buffer_of(good, broken)
    assert taken(buffer, 9) == [(0, 0), (0, 1)]
    for take in (lambda: buffer.take(9), buffer.take_columns, lambda: buffer.take(1)):
        with pytest.raises(KafkaError, match="wrong checksum") as caught:
            take()
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        assert subscription.position(A) == 2
    subscription.place(A, 4)
    buffer.drop(A)
    assert taken(buffer, 9) == []


def test_a_partition_that_is_not_assigned() -> None:
    subscription = Subscription()
    for call in (subscription.position, subscription.pause, subscription.resume, subscription.is_paused):
        with pytest.raises(NotAssignedError, match="orders-0 is not assigned to this consumer"):
            call(A)


class Reading(RuleBasedStateMachine):
    """Any order of fetches, takes, seeks and pauses: each record from the position on comes exactly once, in order."""

    @initialize()
    def begin(self) -> None:
        self.buffer, self.subscription = buffer_of()
        self.fetch_at = {A: 0, B: 0}  # where the next fetch begins
        self.expected = {A: 0, B: 0}  # the next record that the caller must get

    @rule(place=st.sampled_from([A, B]), count=st.integers(1, 6))
    def fetch(self, place: TopicPartition, count: int) -> None:
        start = self.fetch_at[place]
        self.buffer.add(fetched(place, start, start + count))
        self.fetch_at[place] = start + count

    @rule(most=st.integers(1, 5))
    def take(self, most: int) -> None:
        records = self.buffer.take(most)
        assert len(records) <= most
        for record in records:
            self.hand_out(TopicPartition(record.topic, record.partition), record.offset)

    @rule()
    def take_columns(self) -> None:
        found = self.buffer.take_columns()
        if found is not None:
            columns: Columns = found[1]
            for offset in columns.offsets:
                self.hand_out(found[0], offset)

    @rule(place=st.sampled_from([A, B]), offset=st.integers(0, 20))
    def seek(self, place: TopicPartition, offset: int) -> None:
        self.subscription.place(place, offset)
        self.buffer.drop(place)
        self.fetch_at[place] = self.expected[place] = offset

    @rule(place=st.sampled_from([A, B]))
    def pause(self, place: TopicPartition) -> None:
        self.subscription.pause(place)

    @rule(place=st.sampled_from([A, B]))
    def resume(self, place: TopicPartition) -> None:
        self.subscription.resume(place)

    def hand_out(self, place: TopicPartition, offset: int) -> None:
        assert not self.subscription.is_paused(place)
        assert offset == self.expected[place]
        self.expected[place] = offset + 1

    @invariant()
    def the_position_is_behind_what_was_handed_out(self) -> None:
        if hasattr(self, "expected"):
            assert self.subscription.positions() == self.expected


TestReading = Reading.TestCase
TestReading.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
