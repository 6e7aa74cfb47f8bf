"""The simulator: the same seed is the same run, healthy brokers pass, and broken ones are found.

It runs in processes of its own, always from the sources: it replaces the clock before anything is imported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]


def sim(*arguments: str, code: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(TOP / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "devtools.sim", *arguments],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_a_run_repeats_and_broken_brokers_are_found(tmp_path: Path) -> None:
    """The same seed twice in one process, and once more in another; bit by bit, as the digest is of every event."""
    ran = sim("--quick")
    assert ran.count("seed 3: ok") == 2
    first, second = re.findall(r"\[none, [1-9]\d* acknowledged, [1-9]\d* faults.* trace ([0-9a-f]{16})\]", ran)
    assert first == second
    assert "mutant leader-alone: found by seed" in ran

    assert ran.count("kept, ") == ran.count(": ok\n") >= 3

    again = sim("--seed", "3", "--length", "4", "--job", "none", "--trace", str(tmp_path / "trace"))
    assert f"trace {first}]" in again
    assert len((tmp_path / "trace").read_text().splitlines()) > 500
