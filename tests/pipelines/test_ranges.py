"""What is left of a range of offsets, and how it is cut into batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.pipelines.source.offset_ranges import Portion, in_batches, left_of

NUMBERS = st.integers(0, 30)
RANGES = st.tuples(NUMBERS, NUMBERS)


@pytest.mark.parametrize(
    ("wanted", "read", "left"),
    [
        ((0, 100), [], [(0, 100)]),
        ((0, 100), [(40, 60), (90, 120)], [(0, 40), (60, 90)]),
        ((0, 100), [(0, 100)], []),
        ((0, 100), [(30, 90), (40, 50)], [(0, 30), (90, 100)]),
        ((50, 50), [], []),
    ],
)
def test_what_is_left(wanted: tuple[int, int], read: list[tuple[int, int]], left: list[tuple[int, int]]) -> None:
    assert list(left_of(wanted, read)) == left


@given(RANGES, st.lists(RANGES.filter(lambda one: one[0] < one[1])))
def test_each_offset_that_was_not_read_is_left_once(wanted: tuple[int, int], read: list[tuple[int, int]]) -> None:
    found = [number for part in left_of(wanted, read) for number in range(*part)]
    seen = {number for part in read for number in range(*part)}
    assert found == [number for number in range(*wanted) if number not in seen]


@given(st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS), max_size=6), st.integers(1, 10))
def test_batches_have_every_offset_once_and_no_more_than_fit(drawn: list[tuple[int, int, int]], most: int) -> None:
    portions = [Portion("t", *one) for one in drawn]
    batches = in_batches(portions, most)
    offsets = [(one.partition, number) for batch in batches for one in batch for number in range(one.first, one.end)]
    assert offsets == [(one.partition, number) for one in portions for number in range(one.first, one.end)]
    for batch in batches:
        assert 0 < sum(one.end - one.first for one in batch) <= most
        assert len({one.partition for one in batch}) == len(batch)
