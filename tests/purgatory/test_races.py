"""The races that must not be lost, step by step, and the proof that these tests would notice.

Each scenario returns whether the operation in question was completed in the end. It is played on the package as it
is, and again, in a process of its own, on a copy from which the one line that prevents the race has been taken out:
there it must fail. One thread plays all the parts, so the interleaving is always the one described.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ixion
from ixion.purgatory import DelayedOperation, DelayedOperationPurgatory


class Operation(DelayedOperation):
    def __init__(self) -> None:
        super().__init__(1_000)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        pass


def pending_flag() -> bool:
    """Thread a checks and finds nothing; before it lets go, thread b makes the condition true and comes to check."""

    class Contended(Operation):
        def try_complete(self) -> bool:
            if self.ready:
                return self.force_complete()
            self.ready = True  # thread b
            assert not self.safe_try_complete()  # thread b: the try-lock is a's
            return False  # thread a, which looked before b changed anything

    operation = Contended()
    operation.safe_try_complete()
    return operation.completed


def late_watcher() -> bool:
    """Thread a completes the last operation that watches a key; before it clears the list, thread b watches the key."""
    purgatory = DelayedOperationPurgatory("race", reaper=False)
    late = Operation()

    class Last(Operation):
        def on_complete(self) -> None:
            purgatory.try_complete_else_watch(late, ["k"])  # thread b, while thread a is in check_and_complete

    last = Last()
    purgatory.try_complete_else_watch(last, ["k"])
    last.ready = True
    assert purgatory.check_and_complete("k") == 1
    late.ready = True
    purgatory.check_and_complete("k")
    purgatory.shutdown()
    return late.completed


def second_try() -> bool:
    """The event comes after the first try and before the operation is on its watch list."""
    purgatory = DelayedOperationPurgatory("race", reaper=False)

    class Unlucky(Operation):
        def try_complete(self) -> bool:
            if self.ready:
                return self.force_complete()
            self.ready = True  # the event, in another thread, right after this look
            purgatory.check_and_complete("k")  # it finds nobody watching
            return False

    operation = Unlucky()
    purgatory.try_complete_else_watch(operation, ["k"])
    purgatory.shutdown()
    return operation.completed


SCENARIOS = {scenario.__name__: scenario for scenario in (pending_flag, late_watcher, second_try)}


def completes_without(tmp_path: Path, scenario: str, module: str, line: str, instead: str) -> bool:
    """Play the scenario on a copy of the package with `line` of `module` replaced."""
    copy = tmp_path / "ixion"
    shutil.copytree(Path(ixion.__file__).parent, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    source = copy / module
    text = source.read_text()
    assert text.count(line) == 1, f"{module} has no single {line!r}"
    source.write_text(text.replace(line, instead))
    played = subprocess.run(
        [sys.executable, __file__, scenario],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert played.stdout.split()[0] == str(copy)
    return played.stdout.split()[1] == "True"


def test_the_pending_flag(tmp_path: Path) -> None:
    assert pending_flag()
    line = "            operation._pending = True\n"
    assert not completes_without(tmp_path, "pending_flag", "purgatory/operation.py", line, "")


def test_the_watch_list_that_is_emptied_and_watched_at_once(tmp_path: Path) -> None:
    assert late_watcher()
    line = "            if watchers.is_empty():\n"
    assert not completes_without(tmp_path, "late_watcher", "purgatory/watchers.py", line, "            if True:\n")


def test_the_second_try(tmp_path: Path) -> None:
    assert second_try()
    line = "        self._watch(operation, watch_keys)\n        if self._attempt(operation):\n"
    instead = "        self._watch(operation, watch_keys)\n        if False:\n"
    assert not completes_without(tmp_path, "second_try", "purgatory/purgatory.py", line, instead)


if __name__ == "__main__":
    print(Path(ixion.__file__).parent, SCENARIOS[sys.argv[1]]())
