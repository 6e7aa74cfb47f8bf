"""docs/cli.md shows what the commands really print: every example is run, in order, through a shell.

With the compiled package only: some thirty processes take a while, and print the same either way.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ixion.testing import Broker

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"

# What differs from run to run. Of measured figures only the words are compared.
VOLATILE = (
    (re.compile(r"\b[\w-]{22}(?!\w)"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}"), "TIME"),
    (re.compile(r"\b1[789]\d{11}\b"), "MILLISECONDS"),
)
FIGURES = re.compile(r"\d[\d,.]*")
FOLDER = re.compile(r"/\S+/ixion-\w+")
MEASURED = ("$ ixion perf", "$ ixion cluster")


def replay(text: str, bootstrap: str, folder: Path) -> str:
    """The page with what the commands print now."""
    script = folder / "ixion"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ixion "$@"\n')
    script.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "IXION_BOOTSTRAP": bootstrap, "TZ": "UTC"}
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```console"
        if not inside or line.startswith("```"):
            lines.append(line)
        elif line.startswith("$ "):
            command = ["/bin/sh", "-c", f"{{ {line[2:]}; }} 2>&1"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
            lines += [line, *done.stdout.splitlines()]
    return "\n".join(lines) + "\n"


def steady(text: str) -> list[str]:
    lines = []
    measured = False
    for line in text.splitlines():
        for pattern, word in VOLATILE:
            line = pattern.sub(word, line)
        if line.startswith(("$ ", "```")):
            measured = line.startswith(MEASURED)
        elif measured:
            line = " ".join(FIGURES.sub("N", FOLDER.sub("FOLDER", line)).split())
        lines.append(line)
    return lines


@pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="runs with the compiled package, see the module"
)
def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    written = PAGE.read_text()
    with Broker() as broker:
        now = replay(written, broker.bootstrap, tmp_path)
    assert steady(now) == steady(written), f"docs/cli.md replays as:\n{now}"
