"""Clocks: a clock is a callable that returns nanoseconds and never goes back.

The system's clock is `time.monotonic_ns` itself: calling a built-in costs 42 ns, a method around it would double that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

Clock = Callable[[], int]

NS_PER_MS: Final = 1_000_000
system_clock: Final[Clock] = time.monotonic_ns


class ManualClock:
    """A clock that moves only by `advance`, so that a test can cover minutes without sleeping.

    `advance` wakes every timer that waits for this clock: a thread in `advance_clock`, or a loop. Thread-safe.
    """

    def __init__(self, start_ms: int = 0) -> None:
        self._now_ns = start_ms * NS_PER_MS
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []

    def __call__(self) -> int:
        return self._now_ns

    @property
    def now_ms(self) -> int:
        return self._now_ns // NS_PER_MS

    def advance(self, ms: int) -> None:
        if ms < 0:
            raise ValueError(f"a clock never goes back; it cannot advance by {ms} ms")
        with self._lock:
            if self._now_ns + ms * NS_PER_MS >= 2**63:
                raise ValueError(f"a clock of nanoseconds ends after 292 years; it cannot advance by {ms} ms")
            self._now_ns += ms * NS_PER_MS
            listeners = list(self._listeners)
        for wake in listeners:
            wake()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call `wake` after every advance."""
        with self._lock:
            self._listeners.append(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        with self._lock:
            if wake in self._listeners:
                self._listeners.remove(wake)
