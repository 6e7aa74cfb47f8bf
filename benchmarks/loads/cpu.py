"""Processor time of processes that start others."""

from __future__ import annotations

import os
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def tree_seconds(pid: int) -> float:
    """Of a process and its children, also of those that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / TICK
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return own + sum(tree_seconds(int(child)) for file in children for child in file.read_text().split())
