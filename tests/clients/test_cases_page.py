"""The page that leads from the test cases of other clients to ours names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_our_tests_are_where_the_page_says() -> None:
    rows = [
        line.split("|") for line in (ROOT / "docs/clients-cases.md").read_text().splitlines() if line.count("|") == 5
    ]
    named = [path for row in rows[2:] for path in re.findall(r"`([^`]+)`", row[4])]
    assert len(named) > 30
    assert [path for path in named if not (ROOT / "tests" / path).exists()] == []
