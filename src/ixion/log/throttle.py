"""log.cleaner.io.max.bytes.per.second: how fast compaction may read and write.

`spend` counts bytes and sleeps for as long as they are ahead of the rate. Work that is behind earns no credit for more
than `SPAN_S`, so a rest is not followed by a burst. Blocks; for the thread that compacts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SPAN_S: Final = 0.3  # as Apache Kafka's throttler looks at its rate
LONGEST_SLEEP_S: Final = 0.5  # so that a stop of the broker is noticed


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
        """Returns when the bytes may have been read or written, or when `is_stopping` says so."""
        now = self._now_s()
        self._paid_until = max(self._paid_until, now - SPAN_S) + size / max(self.bytes_per_second, 1.0)
        while self._paid_until > now and not is_stopping():
            self._sleep(min(self._paid_until - now, LONGEST_SLEEP_S))
            now = self._now_s()
