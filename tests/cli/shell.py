"""A shell in a terminal, with `ixion` on its path.

Use it for completion, progress lines and Ctrl-C. For the output of a command, `harness` is quicker.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from types import TracebackType

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x07|\r")
BACK = re.compile(r".\x08")  # a character that is written over


def environment(folder: Path, bootstrap: str) -> dict[str, str]:
    """In which `ixion` is the one that is being tested."""
    script = folder / "ixion"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ixion "$@"\n')
    script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "LC_ALL")}
    packages = os.pathsep.join(
        os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path
    )
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {
        **kept,
        "PYTHONPATH": packages,
        "PATH": path,
        "IXION_BOOTSTRAP": bootstrap,
        "TERM": "dumb",
        "COLUMNS": "100",
        "PS1": "> ",
    }


class Shell:
    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder, start_new_session=True
        )
        os.close(theirs)
        self._raw = ""

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def type(self, text: str) -> None:
        self._raw = ""
        os.write(self._ours, text.encode())

    def see(self, expected: str) -> str:
        """Read until it is shown. What never comes runs into the test's own time limit."""
        while expected not in (shown := BACK.sub("", ESCAPES.sub("", self._raw))):
            self._raw += os.read(self._ours, 65536).decode(errors="replace")
        return shown
