"""The simulator: the same seed is the same run, healthy brokers pass, and broken ones are found.

It runs in processes of its own, here from the sources: it replaces the clock before anything is imported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from devtools.sim.command import shrink
from devtools.sim.faults import KINDS, Fault, make_faults
from devtools.sim.run import Outcome

TOP = Path(__file__).parents[2]


def sim(*arguments: str, code: int = 0, hash_seed: str = "random") -> str:
    environment = {**os.environ, "PYTHONPATH": str(TOP / "src"), "PYTHONHASHSEED": hash_seed}
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


@pytest.mark.timeout(900)  # a minute of processor time, and eight processes share the cores
def test_a_run_repeats_and_broken_brokers_are_found(tmp_path: Path) -> None:
    """The same seed twice in one process, and once more in another; bit by bit, as the digest is of every event."""
    ran = sim("--quick")
    assert ran.count("seed 3: ok") == 2
    first, second = re.findall(r"\[none, [1-9]\d* acknowledged, [1-9]\d* faults.* trace ([0-9a-f]{16})\]", ran)
    assert first == second
    assert "mutant leader-alone: found by seed" in ran

    assert ran.count("kept, ") == ran.count(": ok\n") >= 3

    again = sim("--seed", "3", "--length", "4", "--job", "none", "--trace", str(tmp_path / "trace"), hash_seed="7")
    assert f"trace {first}]" in again
    assert len((tmp_path / "trace").read_text().splitlines()) > 500


def test_a_run_repeats_although_its_folder_is_another_one() -> None:
    """A leader whose disk is full names its folder in the error message."""
    first, second = (
        sim("--seed", "1", "--job", "none", "--faults", "disk-full", "--length", "2", "--digest") for _ in range(2)
    )
    assert "1: ok" in first
    assert first == second


def test_broken_queues_are_found() -> None:
    """The end of each run of `shares` looks for these two, whatever the seed has drawn before."""
    ran = sim("--mutants", "due-unstored,lock-outlives-session", "--seeds", "2")
    assert ran.count("| NeverEarly |") + ran.count("| Conserved |") == 2


def test_the_shrinker_keeps_the_faults_that_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    faults = make_faults(5, 30.0, [("t", 0)], KINDS)
    assert len(faults) > 8
    needed = {faults[2], faults[7]}
    runs = []

    def run(seed: int, chosen: list[Fault]) -> Outcome:
        runs.append(chosen)
        if needed <= set(chosen):
            return Outcome(seed, broken="OnceOnly")
        return Outcome(seed, broken="Healthy" if chosen else "")  # another invariant is another failure

    shrink(5, faults, Outcome(5, broken="OnceOnly"), run, " --mutant x")
    said = capsys.readouterr().out
    assert "  2 faults are enough" in said
    assert "again: make sim ARGS='--seed 5 --mutant x --only 2,7'" in said
    assert len(runs) < 3 * len(faults)
