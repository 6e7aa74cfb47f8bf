"""The output of a run: a line for each batch and, on a terminal, a live line below them.

Both must use the same stream, or they overwrite each other; if the lines are piped, the live one is on
standard error.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.status import Status


class Lines:
    def __init__(self) -> None:
        self._on_terminal: Final = sys.stdout.isatty()
        self._console: Final = Console() if self._on_terminal else Console(stderr=True)
        self._live: Status | None = None

    def __enter__(self) -> Lines:
        if self._console.is_terminal:
            self._live = self._console.status("waiting for records")
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def add(self, line: str) -> None:
        """Stays."""
        if self._on_terminal:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line, flush=True)

    def redraw(self, line: str) -> None:
        """Replace the live line."""
        if self._live is not None:
            self._live.update(line)
