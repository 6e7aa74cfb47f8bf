"""The history of one process: a line before each operation, a line after it, on disk before the client goes on."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

PIECES = 1_000_000  # numbers of one diary's processes: beyond them begins the next diary


class Diary:
    """`process` is the number under which the client acts; after an operation of unknown outcome it takes the next."""

    def __init__(self, directory: Path, name: str) -> None:
        self._file = directory / f"{name}-{os.getpid()}.jsonl"
        self.process = os.getpid() * PIECES

    def write(self, kind: str, outcome: str, parts: list[Any]) -> None:
        entry = {"process": self.process, "type": outcome, "f": kind, "value": parts, "time": time.time_ns()}
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        if outcome == "info":
            self.process += 1
