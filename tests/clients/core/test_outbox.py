"""The batches of one partition: what waits, flies and comes back, and in which order it is sent again."""

from __future__ import annotations

from collections import deque

from ixion.clients.core.connection import NEVER
from ixion.clients.core.producer.batch import Batch, Delivery, Due, OnDelivery, ProducerIdentity
from ixion.clients.core.producer.outbox import Outbox, is_after
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.compression import Codec

PLACE = TopicPartition("orders", 0)
TOO_LARGE = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
PRODUCER = ProducerIdentity(7, 0)
NEXT = ProducerIdentity(7, 1)


def empty(due: Due | None = None, batch_bytes: int = 1000) -> Outbox:
    return Outbox(PLACE, batch_bytes, Codec.NONE, None, deque() if due is None else due)


def add(box: Outbox, value: bytes, wish: OnDelivery | None = None) -> None:
    batch = box.open or box.begin(0.0, 0)
    assert box.append(None, value, (), 1)
    if wish is not None:
        batch.wishes.append((batch.count - 1, wish))


def filled(count: int) -> Outbox:
    """Batches of two records."""
    box = empty()
    for number in range(count):
        add(box, b"%d" % number)
        add(box, b"%d" % number)
        box.seal()
    return box


def fly(box: Outbox, identity: ProducerIdentity | None = PRODUCER) -> list[Batch]:
    flown = []
    while box.may_send(5, identity):
        flown.append(box.take())
    return flown


def sequences(box: Outbox) -> list[int]:
    return [BatchView(bytes(batch.data)).base_sequence for batch in box.waiting if batch.builder is None]


def give_back(box: Outbox, *batches: Batch, in_doubt: bool = False) -> None:
    for batch in batches:
        box.give_back(batch, 0.0, in_doubt)


def test_nothing_flies_behind_the_first_of_all() -> None:
    box = filled(4)
    (first,) = fly(box)
    box.acknowledge(first, 0)
    assert len(fly(box)) == 3


def test_without_numbers_there_is_no_first() -> None:
    box = filled(4)
    assert len(fly(box, None)) == 4
    assert {batch.sequence for batch in box.flying} == {-1}


def test_batches_that_come_back_in_another_order_are_sent_again_in_their_own() -> None:
    """The leader moved: one of them was sent to the old leader, the next to the new one, which answered sooner."""
    box = filled(4)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth = fly(box)
    give_back(box, third, second, fourth)
    assert list(box.waiting) == [second, third, fourth]
    box = filled(3)
    flown = fly(box, None)
    give_back(box, *reversed(flown))
    assert list(box.waiting) == flown


def test_parts_of_a_batch_take_its_place_among_those_that_came_back() -> None:
    box = filled(4)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth = fly(box)
    give_back(box, fourth)
    parts = third.split(80, False)
    box.replace(third, parts)
    give_back(box, second)
    assert list(box.waiting) == [second, *parts, fourth]


def test_what_comes_back_is_sent_again_in_its_old_order_when_all_have_landed() -> None:
    box = filled(8)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth, fifth, sixth = fly(box)
    give_back(box, second)
    assert not box.may_send(5, PRODUCER)
    give_back(box, third)
    box.acknowledge(fourth, 6)  # a broker would not, but the order must not hang on that
    assert not box.may_send(5, PRODUCER)
    give_back(box, fifth, sixth)
    assert sequences(box) == [2, 4, 8, 10]
    assert len(box.waiting) == 6


def test_what_is_sent_again_flies_alone() -> None:
    box = filled(8)
    box.acknowledge(fly(box)[0], 0)
    second, third, *others = fly(box)
    give_back(box, second, third)
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
    give_back(box, second)
    box.acknowledge(third, 4)
    box.acknowledge(fourth, 6)
    box.acknowledge(fly(box)[0], 2)
    add(box, b"refused")
    box.seal()
    add(box, b"next")
    box.seal()
    refused, following = fly(box)
    box.refuse(refused, TOO_LARGE)
    give_back(box, following)
    assert sequences(box) == [8]


def test_numbers_wrap() -> None:
    assert is_after(1, 0)
    assert not is_after(0, 0)
    assert not is_after(0, 1)
    assert is_after(0, 2**31 - 1)
    assert not is_after(2**31 - 1, 0)


def test_a_gap_is_closed_when_nothing_flies_any_more() -> None:
    box = filled(5)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth, fifth = fly(box)
    box.refuse(second, TOO_LARGE)
    assert not box.may_send(5, PRODUCER)
    for batch in (third, fourth, fifth):
        assert not box.is_first(batch)
        give_back(box, batch)
    assert sequences(box) == [2, 4, 6]
    assert all(BatchView(bytes(batch.data)).crc_is_valid() for batch in box.waiting)
    assert not box.wants_epoch


def test_what_is_in_doubt_behind_a_gap_gets_no_second_number_in_the_same_epoch() -> None:
    """A late copy of it under the old number could be taken for the batch behind it."""
    box = filled(3)
    box.acknowledge(fly(box)[0], 0)
    second, third = fly(box)
    box.refuse(second, TOO_LARGE)
    give_back(box, third, in_doubt=True)
    assert box.wants_epoch
    assert not box.may_send(5, PRODUCER)
    assert box.can_change_epoch
    box.adopt(NEXT)
    (again,) = fly(box, NEXT)
    assert (again, again.sequence) == (third, 0)
    view = BatchView(bytes(again.data))
    assert (view.producer_epoch, view.base_sequence) == (1, 0)


def test_a_batch_given_up_in_doubt_is_resolved_by_the_next_one() -> None:
    box = filled(2)
    (first,) = fly(box)
    give_back(box, first, in_doubt=True)
    box.expire(first, TOO_LARGE)
    assert box.is_unresolved
    (second,) = fly(box)
    assert second.sequence == 2  # its number leaves room for the first, which may have been written
    box.acknowledge(second, 2)
    assert not box.is_unresolved


def test_a_batch_given_up_in_doubt_and_not_written_costs_an_epoch() -> None:
    box = filled(2)
    (first,) = fly(box)
    give_back(box, first, in_doubt=True)
    box.expire(first, TOO_LARGE)
    (second,) = fly(box)
    box.resend_in_new_epoch(second)  # out of order
    assert box.wants_epoch
    box.adopt(NEXT)
    assert [(batch.sequence, batch.identity) for batch in fly(box, NEXT)] == [(0, NEXT)]


def test_one_in_doubt_before_others_that_were_acknowledged_keeps_its_number() -> None:
    box = filled(5)
    box.acknowledge(fly(box)[0], 0)
    second, third, fourth, fifth = fly(box)
    give_back(box, second, in_doubt=True)  # written, but the broker did not say so
    box.acknowledge(third, 4)
    box.refuse(fourth, TOO_LARGE)
    give_back(box, fifth)
    assert not box.wants_epoch
    assert sequences(box) == [2, 6]


def test_behind_one_given_up_in_doubt_no_number_is_used_again() -> None:
    """The broker would take a new batch under the numbers of the old one for a duplicate, and never write it."""
    box = filled(3)
    (first,) = fly(box)
    give_back(box, first, in_doubt=True)
    box.expire(first, TOO_LARGE)
    (second,) = fly(box)
    box.refuse(second, TOO_LARGE)
    assert box.wants_epoch
    assert not box.may_send(5, PRODUCER)


def test_a_new_epoch_waits_for_what_is_in_doubt_in_the_old_one() -> None:
    box = filled(2)
    (first,) = fly(box)
    give_back(box, first, in_doubt=True)
    (again,) = fly(box, NEXT)  # another partition has changed the epoch
    assert (again, again.identity) == (first, PRODUCER)
    assert not box.may_send(5, NEXT)
    box.acknowledge(first, 0)
    (second,) = fly(box, NEXT)
    assert (second.sequence, second.identity) == (0, NEXT)


def test_one_that_expires_in_flight_keeps_its_bytes_and_its_place() -> None:
    heard: list[Delivery] = []
    box = empty()
    add(box, b"x", heard.append)
    box.seal()
    (batch,) = fly(box)
    data = batch.data
    box.expire(batch, TOO_LARGE)
    assert box.flying[0] is batch
    assert batch.data is data
    box.acknowledge(batch, 5)
    assert len(box.due) == 1
    assert box.due[0][1].error is TOO_LARGE
    assert box.is_idle


def test_smaller_ones_take_the_place_of_one_that_is_too_large() -> None:
    due: Due = deque()
    heard: list[Delivery] = []
    box = empty(due)
    for number in range(6):
        add(box, b"value-%d" % number, heard.append)
    box.seal()
    (large,) = fly(box)
    parts = large.split(len(large.data) // 2)
    box.replace(large, parts)
    assert len(parts) > 1
    offset = 0
    while not box.is_idle:
        for part in fly(box):
            box.acknowledge(part, offset)
            offset += part.count
    for wish, delivery in due:
        wish(delivery)
    assert [delivery.offset for delivery in heard] == list(range(6))
    assert [large.delivery(index).offset for index in range(6)] == list(range(6))
    assert large.is_settled()


def test_every_callback_runs_once_with_the_right_offset() -> None:
    heard: list[Delivery] = []
    due: Due = deque()
    box = empty(due)
    for wish in (heard.append, None, heard.append):
        add(box, b"x", wish)
    box.seal()
    add(box, b"y", heard.append)
    (batch,) = fly(box)
    box.acknowledge(batch, 40)
    box.abandon(TOO_LARGE)
    assert box.is_idle
    for wish, delivery in due:
        wish(delivery)
    assert heard == [Delivery(PLACE, 40, None), Delivery(PLACE, 42, None), Delivery(PLACE, -1, TOO_LARGE)]


def test_a_full_batch_takes_no_more() -> None:
    box = empty(batch_bytes=100)
    box.begin(0.0, 0)
    assert box.append(None, b"x" * 200, (), 1)  # the first always fits
    assert not box.append(None, b"y", (), 1)
    box.seal()
    add(box, b"y")


def test_the_oldest_is_the_first_that_is_not_settled() -> None:
    box = empty()
    assert box.oldest_s == NEVER
    for born_s in (3.0, 5.0, 8.0):
        box.begin(born_s, 0)
        assert box.append(None, b"x", (), 1)
        box.seal()
    box.begin(9.0, 0)
    assert box.oldest_s == 3.0
    (first,) = fly(box)
    assert box.oldest_s == 3.0  # it flies
    first.settle(-1, TOO_LARGE, box.due)
    assert box.oldest_s == 5.0  # given up, though its request is under way
    box.acknowledge(first, 0)
    second, third = fly(box)
    box.acknowledge(second, 1)
    box.acknowledge(third, 2)
    assert box.oldest_s == 9.0
