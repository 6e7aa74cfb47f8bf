"""Lets other threads run in the middle of a long loop of compiled code.

Compiled code keeps the interpreter lock until it calls a function that releases it. Walking the records of a batch
calls none: a legal batch of 860 KB may hold millions of records, and the event loop would wait for all of them. So a
worker thread counts its steps here, and every `EVERY` steps it sleeps for 0 s, which gives the lock to a waiting
thread. Not for the event loop's own thread: there, long work is sliced (see `timer.turns`).
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from time import sleep
from typing import Final

from ixion._native import i64

EVERY: Final = 2_000  # steps of about a microsecond


class Breather:
    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: i64 = EVERY

    def step(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._left = EVERY
            sleep(0)
