"""A19: a topic in mode `off` pays less than one per cent for delayed delivery."""

from __future__ import annotations

from pathlib import Path

from benchmarks.loads.off_instructions import count_instructions
from benchmarks.loads.without_delays import CHECKOUT, write_without_delays


def test_a19_a_produce_and_a_fetch_in_mode_off_need_no_more_than_without_the_feature(tmp_path: Path) -> None:
    """Interpreted, whatever is installed: it counts instructions, of the same load by two trees of sources."""
    without = count_instructions(write_without_delays(tmp_path))
    found = count_instructions(CHECKOUT / "src")
    for have, base in zip(found, without, strict=True):
        assert base < have < base * 1.01, f"{found} instructions for a produce and a fetch, {without} without"
