"""Which of the fetched records are the reader's: transactions, markers, and batches that begin too early."""

from __future__ import annotations

import pytest

from ixion.clients.fetched import Fetched
from ixion.clients.metadata import TopicPartition
from ixion.language.protocol.messages.k01_fetch import AbortedTransaction
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.control import transaction_marker
from tests.records import forge

PLACE = TopicPartition("orders", 0)


def data(offset: int, producer: int, count: int = 1, *, transactional: bool = True) -> BatchView:
    builder = BatchBuilder(
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=offset,
        is_transactional=transactional,
    )
    for number in range(count):
        builder.append(None, b"%d" % (offset + number))
    return BatchView(builder.build())


def marker(offset: int, producer: int, *, commit: bool) -> BatchView:
    made = transaction_marker(
        commit=commit, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=1, base_offset=offset
    )
    return BatchView(made)


def offsets(fetched: Fetched) -> list[int]:
    return [record.offset for record in fetched.records()]


BATCHES = [data(0, 7), data(1, 8), marker(2, 7, commit=False), data(3, 7), marker(4, 7, commit=True)]
ABORTED = [AbortedTransaction(producer_id=7, first_offset=0)]


def test_the_example_of_the_module() -> None:
    fetched = Fetched(PLACE, 0, BATCHES, 5, ABORTED)
    assert offsets(fetched) == [1, 3]
    assert fetched.next_offset == 5


def test_a_reader_of_everything_gets_all_but_the_markers() -> None:
    assert offsets(Fetched(PLACE, 0, BATCHES, 5, None)) == [0, 1, 3]


@pytest.mark.parametrize("aborted", [None, []], ids=["uncommitted", "committed"])
def test_a_marker_that_compaction_has_emptied_is_passed_over(aborted: list[AbortedTransaction] | None) -> None:
    emptied = BatchView(forge.batch(b"", count=0, base_offset=1, last_offset_delta=0, attributes=0x30, producer_id=7))
    fetched = Fetched(PLACE, 0, [data(0, 7), emptied, data(2, 7)], 3, aborted)
    assert offsets(fetched) == [0, 2]
    assert fetched.next_offset == 3
    alone = Fetched(PLACE, 1, [emptied], 3, aborted)
    assert (offsets(alone), alone.next_offset) == ([], 2)


def test_an_abort_counts_from_its_first_offset_on() -> None:
    batches = [data(0, 7), marker(1, 7, commit=True), data(2, 7), data(3, 7), marker(4, 7, commit=False)]
    aborted = [AbortedTransaction(producer_id=7, first_offset=2)]
    assert offsets(Fetched(PLACE, 0, batches, 5, aborted)) == [0]


def test_a_transaction_that_began_before_the_fetch_is_aborted_too() -> None:
    batches = [data(10, 7, 2), data(12, 9, transactional=False), marker(13, 7, commit=False)]
    aborted = [AbortedTransaction(producer_id=7, first_offset=3)]
    assert offsets(Fetched(PLACE, 10, batches, 14, aborted)) == [12]


def test_the_list_of_aborted_ones_may_come_in_any_order() -> None:
    batches = [data(0, 7), data(1, 8), marker(2, 8, commit=False), marker(3, 7, commit=False), data(4, 8)]
    aborted = [AbortedTransaction(producer_id=8, first_offset=1), AbortedTransaction(producer_id=7, first_offset=0)]
    assert offsets(Fetched(PLACE, 0, batches, 5, aborted)) == [4]


def test_what_lies_before_the_wanted_offset_is_left_out() -> None:
    fetched = Fetched(PLACE, 2, [data(0, 1, 4, transactional=False)], 4, None)
    assert offsets(fetched) == [2, 3]
    assert fetched.next_offset == 4


def test_nothing_came() -> None:
    fetched = Fetched(PLACE, 9, [], 9, None)
    assert offsets(fetched) == []
    assert fetched.next_offset == 9


def test_columns_of_a_view_refer_to_one_copy_of_it() -> None:
    whole = memoryview(b"".join(bytes(data(offset, 1, 2, transactional=False).as_view()) for offset in (0, 2, 4)))
    fetched = Fetched(PLACE, 1, list(iter_batches(whole)), 6, None)
    (columns,) = fetched.columns(5)
    assert list(columns.offsets) == [1, 2, 3, 4]
    assert columns.values.source == whole
    assert [columns.values[row] for row in range(4)] == [record.value for record in fetched.records()][:4]
