"""Every accepted difference is a row of docs/differences.md, which users read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.differences import DELIBERATE

ROWS = Path(__file__).parents[2].joinpath("docs", "differences.md").read_text()


@pytest.mark.parametrize("row", sorted({each.row for each in DELIBERATE}))
def test_it_is_documented(row: str) -> None:
    assert f"\n| {row} |" in ROWS
