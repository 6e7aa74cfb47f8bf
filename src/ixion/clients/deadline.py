"""How long a caller is willing to wait, in all, and how long to pause between two attempts."""

from __future__ import annotations

import os
import time
from typing import Final

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0


class Deadline:
    """A moment on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at_s = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        return self.at_s - time.monotonic()

    @property
    def left_ms(self) -> int:
        """For the timeout field of a request: at least 1."""
        return max(int(self.left_s * 1000), 1)

    @property
    def passed(self) -> bool:
        return self.left_s <= 0


class Pauses:
    """Pauses that double: 20, 40, 80 ms … up to a second, each by up to a fifth longer or shorter.

    The fifth keeps many clients that lost the same broker from coming back at the same moment. (`random` would cost
    several milliseconds of every start.)
    """

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    def next_s(self) -> float:
        pause = self._next_s * (0.8 + 0.4 * os.urandom(1)[0] / 255)
        self._next_s = min(self._next_s * 2, LONGEST_PAUSE_S)
        return pause

    def sleep(self, deadline: Deadline) -> None:
        time.sleep(max(min(self.next_s(), deadline.left_s), 0))
