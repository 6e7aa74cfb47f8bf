"""Ctrl-C, SIGTERM and a closed terminal end a command in the same way: an exception unwinds it.

So a member leaves its group after a last commit, a producer sends what it has read, and temporary files are removed.

    with held_interrupt() as interrupt:
        for record in records:
            write(record)
            count(record)
            if interrupt.wanted:
                break
    # KeyboardInterrupt is raised here

delays them during a few instructions that must stay together. A second signal is not delayed: the command may hang.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)  # Python raises KeyboardInterrupt for SIGINT by itself


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP. A subclass, so that everything that cleans up after Ctrl-C does so for these as well."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def raise_when_ended() -> None:
    """Raise `Terminated` on SIGTERM and SIGHUP, unless the process ignores them, as under nohup."""
    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, raise_terminated)


def raise_terminated(number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


def exit_code(error: KeyboardInterrupt) -> int:
    """128 plus the number of the signal, as shells have it."""
    return 128 + (error.number if isinstance(error, Terminated) else signal.SIGINT)


class Interrupt:
    def __init__(self) -> None:
        self.wanted = 0  # the number of the signal

    def handle(self, number: int, _frame: FrameType | None) -> None:
        if self.wanted:
            raise_for(number)
        self.wanted = number


def raise_for(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)


@contextmanager
def held_interrupt() -> Iterator[Interrupt]:
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread handles signals
        return
    held = [number for number in ENDING if signal.getsignal(number) is raise_terminated]
    before = {number: signal.signal(number, interrupt.handle) for number in (signal.SIGINT, *held)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if interrupt.wanted:
        raise_for(interrupt.wanted)
