"""The batches of one partition: what waits, flies and comes back, and in which order it is sent again."""

from __future__ import annotations

from collections import deque

from ixion.clients.metadata import TopicPartition
from ixion.clients.outbox import NOBODY, Batch, Delivery, Due, Outbox, ProducerIdentity, is_after
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.batch import BatchView
from ixion.records.compression import Codec

PLACE = TopicPartition("orders", 0)
TOO_LARGE = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)


SOMEBODY = ProducerIdentity(7, 0)


def filled(count: int, identity: ProducerIdentity = SOMEBODY) -> Outbox:
    """Batches of two records."""
    box = Outbox(PLACE, identity, 1000, Codec.NONE, None, deque())
    for number in range(count):
        for _ in range(2):
            assert box.append(None, b"%d" % number, (), 1, None, 0.0)
        box.seal()
    return box


def fly(box: Outbox) -> list[Batch]:
    flown = []
    while box.may_send(0.0, 5):
        flown.append(box.take())
    return flown


def sequences(box: Outbox) -> list[int]:
    return [BatchView(batch.data).base_sequence for batch in box.waiting]


def test_nothing_flies_behind_the_first_of_all() -> None:
    box = filled(4)
    (first,) = fly(box)
    box.acknowledge(first, 0)
    assert len(fly(box)) == 3


def test_without_numbers_there_is_no_first() -> None:
    box = filled(4, NOBODY)
    assert len(fly(box)) == 4
    assert {batch.sequence for batch in box.flying} == {-1}


def test_what_comes_back_is_sent_again_in_its_old_order_when_all_have_landed() -> None:
    box = filled(8)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth, fifth, sixth = fly(box)
    box.give_back(second, 0.0)
    assert not box.may_send(0.0, 5)
    box.give_back(third, 0.0)
    box.acknowledge(fourth, 6)  # a broker would not, but the order must not hang on that
    assert not box.may_send(0.0, 5)
    box.give_back(fifth, 0.0)
    box.give_back(sixth, 0.0)
    assert sequences(box) == [2, 4, 8, 10, 12, 14]


def test_what_is_sent_again_flies_alone() -> None:
    box = filled(8)
    box.acknowledge(fly(box)[0], 0)
    second, third, *others = fly(box)
    box.give_back(second, 0.0)
    box.give_back(third, 0.0)
    for batch in others:
        box.acknowledge(batch, 0)
    assert fly(box) == [second]
    box.acknowledge(second, 2)
    assert fly(box) == [third]
    box.acknowledge(third, 4)
    assert [batch.sequence for batch in fly(box)] == [12, 14]


def test_a_late_answer_does_not_turn_the_numbers_back() -> None:
    box = filled(4)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth = fly(box)
    box.give_back(second, 0.0)
    box.acknowledge(third, 4)
    box.acknowledge(fourth, 6)
    box.acknowledge(fly(box)[0], 2)
    box.append(None, b"refused", (), 1, None, 0.0)
    box.seal()
    box.append(None, b"next", (), 1, None, 0.0)
    box.refuse(fly(box)[0], TOO_LARGE)
    assert sequences(box) == [8]


def test_numbers_wrap() -> None:
    assert is_after(1, 0)
    assert not is_after(0, 0)
    assert not is_after(0, 1)
    assert is_after(0, 2**31 - 1)
    assert not is_after(2**31 - 1, 0)


def test_a_pause_is_kept() -> None:
    box = filled(1)
    box.give_back(fly(box)[0], 3.0)
    assert not box.may_send(2.9, 5)
    assert box.may_send(3.0, 5)


def test_a_gap_is_closed_when_nothing_flies_any_more() -> None:
    box = filled(5)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth, fifth = fly(box)
    box.append(None, b"open", (), 1, None, 0.0)
    box.seal()
    box.refuse(second, TOO_LARGE)
    assert not box.may_send(0.0, 5)
    for batch in (third, fourth, fifth):
        assert not box.is_first(batch)
        box.give_back(batch, 0.0)
    assert sequences(box) == [2, 4, 6, 8]
    assert all(BatchView(batch.data).crc_is_valid() for batch in box.waiting)
    assert [batch.sequence for batch in box.waiting] == [2, 4, 6, 8]
    assert box.append(None, b"next", (), 1, None, 0.0)
    box.seal()
    assert sequences(box)[-1] == 9


def test_the_bytes_that_are_not_settled_are_counted() -> None:
    box = filled(3)
    whole = box.size_in_bytes
    assert whole == sum(len(batch.data) for batch in box.waiting)
    (first,) = fly(box)
    box.give_back(first, 0.0)
    assert box.size_in_bytes == whole
    box.acknowledge(fly(box)[0], 0)
    assert box.size_in_bytes == sum(len(batch.data) for batch in box.waiting)
    box.abandon(TOO_LARGE)
    assert box.size_in_bytes == 0
    assert box.is_idle


def test_everybody_hears_once_and_with_the_right_offset() -> None:
    heard: list[Delivery] = []
    due: Due = deque()
    box = Outbox(PLACE, NOBODY, 1000, Codec.NONE, None, due)
    for wish in (heard.append, None, heard.append):
        box.append(None, b"x", (), 1, wish, 0.0)
    box.seal()
    box.append(None, b"y", (), 1, heard.append, 0.0)
    (batch,) = fly(box)
    box.acknowledge(batch, 40)
    box.abandon(TOO_LARGE)
    for wish, delivery in due:
        wish(delivery)
    assert heard == [Delivery(PLACE, 40, None), Delivery(PLACE, 42, None), Delivery(PLACE, -1, TOO_LARGE)]


def test_a_full_batch_takes_no_more() -> None:
    box = Outbox(PLACE, NOBODY, 100, Codec.NONE, None, deque())
    assert box.append(None, b"x" * 200, (), 1, None, 0.0)  # the first always fits
    assert not box.append(None, b"y", (), 1, None, 0.0)
    box.seal()
    assert box.append(None, b"y", (), 1, None, 0.0)
