"""A rate over the last windows of time, as Kafka measures it for quotas.

Values are summed in windows of `window_ms`. The last `count` windows are kept, and one more that overlaps the oldest.
The rate is their sum divided by the time since the oldest began. While fewer than `count` - 1 windows have passed, the
missing ones count as idle time. So a client may begin with a burst: with 11 windows of 1 s and 1,000 bytes/s, 10,000
bytes at once are a rate of 1,000 bytes/s.

    t = 0.0 s   10,000 bytes   rate 10,000 / 10 s = 1,000   within the quota
    t = 0.5 s   +1,050 bytes   rate 11,050 / 10.5 s = 1,052  52 too many: wait 52 / 1,000 of 10.5 s = 550 ms
"""

from __future__ import annotations


class Window:
    __slots__ = ("begun_ms", "last_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.begun_ms = now_ms
        self.last_ms = now_ms
        self.value = 0.0


class Rate:
    def __init__(self, count: int, window_ms: int) -> None:
        self._count = count
        self._window_ms = window_ms
        self._windows: list[Window] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self._windows:
            self._windows.append(Window(now_ms))
        window = self._windows[self._current]
        if now_ms - window.begun_ms >= self._window_ms:
            self._current = (self._current + 1) % (self._count + 1)
            if self._current == len(self._windows):
                self._windows.append(Window(now_ms))
            else:
                reset(self._windows[self._current], now_ms)
            window = self._windows[self._current]
        window.value += value
        window.last_ms = now_ms

    def measure(self, now_ms: int) -> tuple[float, int]:
        """The rate per second, and the measured time in milliseconds."""
        total, length_ms = self._sum(now_ms)
        missing = self._count - 1 - length_ms // self._window_ms
        if missing > 0:
            length_ms += missing * self._window_ms
        length_ms = max(length_ms, 1)
        return total * 1_000 / length_ms, length_ms

    def measure_simply(self, now_ms: int) -> float:
        """The rate per second over the time since the oldest window began, at least one window: no burst at the start.
        Kafka's SimpleRate, which limits replication."""
        total, length_ms = self._sum(now_ms)
        return total * 1_000 / max(length_ms, self._window_ms)

    def _sum(self, now_ms: int) -> tuple[float, int]:
        """The sum of the windows that have not expired, and the time since the oldest of them began."""
        oldest_ms = now_ms
        total = 0.0
        expired_ms = now_ms - self._count * self._window_ms
        for window in self._windows:
            if window.last_ms <= expired_ms:
                reset(window, now_ms)
            elif window.begun_ms < oldest_ms:
                oldest_ms = window.begun_ms
            total += window.value
        return total, now_ms - oldest_ms


def reset(window: Window, now_ms: int) -> None:
    window.begun_ms = now_ms
    window.last_ms = now_ms
    window.value = 0.0
