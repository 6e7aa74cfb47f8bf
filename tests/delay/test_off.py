"""A19: a topic in mode `off` pays less than one per cent for delayed delivery."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def test_a19_a_produce_and_a_fetch_in_mode_off_spend_less_than_one_per_cent_on_delays() -> None:
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT / 'src'}:{CHECKOUT}"}  # interpreted: it counts instructions
    environment.pop("COVERAGE_PROCESS_START", None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.delay.off_cost"],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    delays, total = map(int, done.stdout.split())
    assert 0 < delays < total / 100, f"{delays} of {total} instructions"
