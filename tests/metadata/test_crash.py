"""Killed at any moment, the embedded engine holds what it acknowledged, and of the change under way all or nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

from ixion.broker.metadata.embedded import EmbeddedStore
from tests.metadata import crash_writer
from tests.metadata.crash_writer import apply, contents, steps

ROUNDS = 12


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    file = str(tmp_path / "m")
    held: crash_writer.Tree = {}
    drawn = random.Random(20)
    acknowledged_in_all = 0
    for seed in range(ROUNDS):
        acknowledged = kill_after(drawn.randrange(60), drawn.random() * 0.01, file, seed)
        store = EmbeddedStore(file)
        found = contents(store)
        store.close()
        expected = dict(held)
        done = list(islice(steps(seed, held), acknowledged + 1))
        for operations in done[:-1]:
            apply(expected, operations)
        one_more = dict(expected)
        apply(one_more, done[-1])
        assert found in (expected, one_more), f"after {acknowledged} acknowledged changes, seed {seed}"
        held = found
        acknowledged_in_all += acknowledged
    assert acknowledged_in_all > 100


def kill_after(count: int, seconds: float, file: str, seed: int) -> int:
    """How many changes the writer acknowledged in all, killed some time after it had acknowledged `count`."""
    writer = subprocess.Popen([sys.executable, crash_writer.__file__, file, str(seed)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    said = b""
    while len(said) < count:
        more = os.read(writer.stdout.fileno(), 1)
        assert more, "the writer ended by itself"
        said += more
    time.sleep(seconds)  # into the middle of a change
    writer.kill()
    said += writer.stdout.read()
    writer.stdout.close()
    assert writer.wait() == -9
    return len(said)
