"""Scenario files: a long behaviour as a text that shows each command with the output it must give.

    # a comment
    > command words
    expected line
    expected line

`check(path, run)` replays the commands through `run(words) -> lines` and fails with the file as it should read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def check(path: Path, run: Callable[[list[str]], list[str]]) -> None:
    written = path.read_text().splitlines()
    replayed: list[str] = []
    for line in written:
        if line.startswith("> "):
            replayed.append(line)
            replayed.extend(run(line[2:].split()))
        elif not line or line.startswith("#"):
            replayed.append(line)
    assert replayed == written, f"{path.name} replays as:\n" + "\n".join(replayed)
