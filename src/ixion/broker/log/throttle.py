"""Limits the rate at which compaction reads and writes: log.cleaner.io.max.bytes.per.second.

`spend` counts bytes and sleeps while they are ahead of the rate. Idle time earns a credit of at most `SPAN_S`, so a
pause is not followed by a burst. Blocks; for the thread that compacts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SPAN_S: Final = 0.3  # the check interval of Apache Kafka's throttler
LONGEST_SLEEP_S: Final = 0.5  # so that the thread notices a stop of the broker


class Throttle:
    def __init__(
        self,
        bytes_per_second: float,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.bytes_per_second = bytes_per_second
        self._now_s = now_s
        self._sleep = sleep
        self._paid_until = now_s()

    def spend(self, size: int, is_stopping: Callable[[], bool]) -> None:
        """Returns when the rate allows these bytes, or when `is_stopping` returns True."""
        now = self._now_s()
        self._paid_until = max(self._paid_until, now - SPAN_S) + size / max(self.bytes_per_second, 1.0)
        while self._paid_until > now and not is_stopping():
            self._sleep(min(self._paid_until - now, LONGEST_SLEEP_S))
            now = self._now_s()
