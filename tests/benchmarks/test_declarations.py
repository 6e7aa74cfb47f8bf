from __future__ import annotations

import pytest

from benchmarks.__main__ import load, names


def test_there_are_benchmarks() -> None:
    assert {"timer", "purgatory"} <= set(names())


@pytest.mark.parametrize("name", names())
def test_goals_and_rows_of_a_benchmark_fit_together(name: str) -> None:
    benchmark = load(name)
    rows = [row.key for row in benchmark.rows]
    assert len(rows) == len(set(rows))
    for goal in benchmark.goals:
        assert goal.value[0] in rows, goal.label
        if isinstance(goal.base, tuple):
            assert goal.base[0] in rows, goal.label
