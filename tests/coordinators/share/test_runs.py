"""The merge of states, against a dictionary of offsets."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.coordinators.share.runs import Runs
from ixion.broker.replica.share_persister import ACKNOWLEDGED, ARCHIVED, AVAILABLE, StateBatch

OFFSETS = 40

batches = st.builds(
    lambda first, length, state, deliveries, due: StateBatch(first, first + length, state, deliveries, due),
    st.integers(0, OFFSETS),
    st.integers(0, 12),
    st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
    st.integers(0, 2),
    st.sampled_from([0, 0, 7]),
)
changes = st.lists(st.tuples(batches, st.integers(0, 3)), max_size=30)  # a change, and how far the start moves after it


@settings(max_examples=150, deadline=None)
@given(changes)
def test_later_changes_count_for_each_offset(given_changes: list[tuple[StateBatch, int]]) -> None:
    runs = Runs()
    model: dict[int, tuple[int, int, int]] = {}
    start = 0
    for batch, step in given_changes:
        runs.apply(batch, start)
        model.update((offset, batch[2:]) for offset in range(max(batch.first, start), batch.last + 1))
        start += step
        runs.drop_before(start)
        model = {offset: state for offset, state in model.items() if offset >= start}
        found = list(runs)
        assert {offset: run[2:] for run in found for offset in range(run.first, run.last + 1)} == model
        assert len(runs) == len(found)
        for run, following in itertools.pairwise(found):
            assert run.last < following.first
            assert run.last + 1 < following.first or run[2:] != following[2:], "equal neighbours are one run"


def test_a_change_of_the_middle_leaves_both_sides() -> None:
    runs = Runs([StateBatch(10, 19, AVAILABLE, 1)])
    runs.apply(StateBatch(12, 12, ACKNOWLEDGED, 1))
    assert list(runs) == [
        StateBatch(10, 11, AVAILABLE, 1),
        StateBatch(12, 12, ACKNOWLEDGED, 1),
        StateBatch(13, 19, AVAILABLE, 1),
    ]


def test_a_million_offsets_of_one_state_are_one_run() -> None:
    runs = Runs()
    for first in range(0, 1_000_000, 1_000):
        runs.apply(StateBatch(first, first + 999, ACKNOWLEDGED, 1))
    assert list(runs) == [StateBatch(0, 999_999, ACKNOWLEDGED, 1)]
