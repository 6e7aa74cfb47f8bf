"""Delays Ctrl-C during a few instructions that must stay together.

    with held_interrupt() as interrupt:
        for record in records:
            write(record)
            count(record)
            if interrupt.wanted:
                break
    # KeyboardInterrupt is raised here

A second Ctrl-C is not delayed, in case the command hangs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    def __init__(self) -> None:
        self.wanted = False

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True


@contextmanager
def held_interrupt() -> Iterator[Interrupt]:
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread handles signals
        return
    before = signal.signal(signal.SIGINT, interrupt.handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupt.wanted:
        raise KeyboardInterrupt
