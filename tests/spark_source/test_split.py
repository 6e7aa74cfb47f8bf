"""Ranges of offsets cut into tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ixion.clients.consumer.ranges import Range
from ixion.clients.metadata import TopicPartition
from ixion.spark.split import limited, split

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
RANGES = st.dictionaries(
    st.builds(TopicPartition, st.just("t"), st.integers(0, 9)),
    st.tuples(st.integers(0, 50), st.integers(0, 1000)).map(lambda span: (span[0], span[0] + span[1])),
    max_size=6,
)


def test_the_example_of_the_module() -> None:
    pieces = split({A: (0, 900), B: (0, 100)}, 4)
    assert [(place, end - start) for place, (start, end) in pieces] == [(A, 225)] * 4 + [(B, 100)]


def test_no_piece_is_longer_than_allowed() -> None:
    assert split({A: (5, 15)}, max_offsets=4) == [(A, (5, 8)), (A, (8, 11)), (A, (11, 15))]


@given(RANGES, st.integers(0, 30), st.integers(0, 300))
def test_pieces_cover_the_ranges_exactly(ranges: dict[TopicPartition, Range], least: int, most: int) -> None:
    pieces = split(ranges, least, most)
    for place, (start, end) in ranges.items():
        mine = [span for each, span in pieces if each == place]
        assert [offset for left, right in mine for offset in range(left, right)] == list(range(start, end))
        assert all(left < right and (not most or right - left <= most) for left, right in mine)


def test_a_batch_takes_of_each_range_its_share() -> None:
    assert limited({A: (0, 900), B: (0, 100)}, 15) == {A: 14, B: 1}
    assert limited({A: (5, 8), B: (0, 2)}, 5) == {A: 8, B: 2}
    assert limited({A: (0, 100), B: (7, 3)}, 10) == {A: 10, B: 3}  # B has lost records, which is said when it is read


@given(RANGES, st.integers(1, 300))
def test_batches_are_full_and_reach_the_end(ranges: dict[TopicPartition, Range], most: int) -> None:
    left = dict(ranges)
    while total := sum(end - start for start, end in left.values()):
        ends = limited(left, most)
        taken = {place: ends[place] - start for place, (start, _) in left.items()}
        assert sum(taken.values()) == min(most, total)
        assert all(0 <= taken[place] <= end - start for place, (start, end) in left.items())
        left = {place: (ends[place], end) for place, (_, end) in left.items()}
