"""Runs due delivery callbacks in the order of their records, on one thread at a time.

Both the engine's thread and callers run them. The engine knows only this object, which must not refer to the producer,
so that a producer which is dropped without close() can be noticed.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import threading
import time
from typing import final

from ixion.clients.core.producer.batch import Due
from ixion.clients.engine import Engine, Machine
from ixion.clients.log import log_callback


def run_due(due: Due) -> None:
    """Run due callbacks. An error of a callback is logged."""
    while due:
        wish, delivery = due.popleft()
        try:
            wish(delivery)
        except Exception:
            log_callback(delivery)


@final
class Callbacks:
    def __init__(self, machine: Machine, due: Due) -> None:
        self.engine = Engine(machine, "ixion-producer", self.run)
        self._due = due
        self._runner = 0  # the thread that runs callbacks

    def run(self) -> None:
        """Run due callbacks, without holding the lock."""
        while self._due:
            is_mine = False
            try:  # an interrupt may come anywhere
                with self.engine.lock:
                    if self._runner:
                        return
                    self._runner = threading.get_ident()
                    is_mine = True
                run_due(self._due)
            finally:
                if is_mine:
                    self._runner = 0
                    self.engine.announce()

    def finish(self, until_s: float) -> None:
        """Wait for callbacks, also those that another thread runs, unless this is called by one of them."""
        with self.engine.lock:
            while self._runner not in (0, threading.get_ident()) and time.monotonic() < until_s:
                self.engine.await_news(until_s)
        self.run()
