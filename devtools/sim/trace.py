"""What happened in a run, event by event; its digest tells two runs apart."""

from __future__ import annotations

import hashlib
from typing import Final

LATEST: Final = 400


class Trace:
    def __init__(self, keep: bool = False) -> None:
        self._digest = hashlib.sha256()
        self._keep = keep
        self.lines: list[str] = []
        self.count = 0

    def add(self, now_s: float, kind: str, text: str) -> None:
        line = f"{now_s:.6f} {kind} {text}"
        self._digest.update(line.encode())
        self.count += 1
        if self._keep or kind in ("fault", "note"):
            self.lines.append(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()[:16]
