"""docs/limits.md and the tables of deferred work name budgets and tests that exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MIB = 1 << 20


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first row begins with `heading`."""
    lines = (ROOT / "docs" / page).read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    found = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


LIMITS = rows("limits.md", "table")
DEFERRED = rows("security.md", "done later")


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row[0])
def test_every_budget_is_the_one_in_the_code(row: list[str]) -> None:
    number, unit = row[1].split()
    assert unit == "MiB"
    module, _, name = row[2].strip("`").rpartition(".")
    assert getattr(import_module(module), name) == int(number) * MIB


@pytest.mark.parametrize("row", [*LIMITS, *DEFERRED], ids=lambda row: row[0])
def test_every_row_has_its_test(row: list[str]) -> None:
    for named in row[-1].split(", "):
        file, _, test = named.strip("`").partition("::")
        source = (ROOT / file).read_text()
        assert re.search(rf"^(async )?def {re.escape(test)}\(", source, re.MULTILINE), named


def test_there_are_rows() -> None:
    assert len(LIMITS) > 10
    assert len(DEFERRED) > 5
