"""Relaxing the collector is the program's decision, and changes only what it says."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
before = gc.get_threshold()
import ixion.timer, ixion.purgatory
timer = ixion.timer.SystemTimer("quiet")
timer.call_later(5, print)
assert gc.get_threshold() == before and gc.isenabled()
timer.shutdown()
ixion.timer.relax_collector()
assert gc.get_threshold() == (5_000, 5, 2_000) and gc.isenabled() and gc.get_freeze_count() > 1_000
print("relaxed")
"""


def test_only_when_asked() -> None:
    played = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True)
    assert played.stdout == "relaxed\n"
