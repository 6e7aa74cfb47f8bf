"""Messages that the benchmark of delayed messages schedules, and how late they come."""

from __future__ import annotations

import threading
from collections.abc import Callable

from benchmarks.loads.schedulers.scheduler import PATIENCE_S, Scheduler, now_ms

TOMORROW_MS = 24 * 3_600_000
LEAD_MS = 1_500
MOST_LEAD_MS = 60_000
SLOWEST = 5  # messages a millisecond that every system schedules, so that none is due before it is scheduled
VALUE = bytes(1_000)
MANY = 1_000_000_000  # more than will come
PIECE = 10_000  # messages made at a time


class Arrivals:
    """A consumer on a thread of its own, that notes when messages come."""

    def __init__(self, scheduler: Scheduler, count: int) -> None:
        self.late_ms: list[float] = []
        self.last_ms = 0.0
        self._early_ms = scheduler.early_ms
        self._thread = threading.Thread(target=self._run, args=(scheduler, count), daemon=True)
        self._thread.start()

    def _run(self, scheduler: Scheduler, count: int) -> None:
        for payload in scheduler.arrivals(count):
            self.last_ms = now_ms()
            self.late_ms.append(self.last_ms - int(payload.partition(b":")[0]))

    def join(self, count: int, patience_s: float = PATIENCE_S) -> list[float]:
        """How late each of them was, sorted. RuntimeError if one is missing, or came earlier than allowed."""
        self._thread.join(patience_s)
        if len(self.late_ms) < count:
            raise RuntimeError(f"{count - len(self.late_ms)} of {count} messages did not come")
        found = sorted(self.late_ms)
        if found[0] < -self._early_ms:
            raise RuntimeError(f"a message came {-found[0]:.3f} ms early")
        return found


def message(due_ms: int, number: int, value: bytes = b"") -> tuple[int, bytes]:
    return due_ms, b"%d:%d:%b" % (due_ms, number, value)


def lateness(scheduler: Scheduler, count: int, rate: int) -> list[float]:
    """Of so many messages, `rate` due in a second; in milliseconds, sorted."""
    return in_time(
        scheduler, count, max(count // SLOWEST - count * 1_000 // rate, 0), lambda number: number * 1_000 // rate
    )


def in_time(scheduler: Scheduler, count: int, lead_ms: int, after_ms: Callable[[int], int]) -> list[float]:
    """How late each message was. They are sent again, with more time, if one was due before all were scheduled."""
    lead_ms += LEAD_MS
    while lead_ms < MOST_LEAD_MS:
        arrivals = Arrivals(scheduler, count)
        first_ms = int(now_ms()) + lead_ms
        scheduler.schedule([message(first_ms + after_ms(number), number, VALUE) for number in range(count)])
        left_ms = first_ms - now_ms()
        found = arrivals.join(count)
        if left_ms > scheduler.early_ms:
            return found
        lead_ms *= 2
    raise RuntimeError(f"{count} messages could not be scheduled within {MOST_LEAD_MS} ms")


def part(found: list[float], thousandths: int) -> float:
    """What so many thousandths of the sorted values do not exceed."""
    return found[len(found) * thousandths // 1_000]


def fill(scheduler: Scheduler, start: int, end: int, after_ms: int = TOMORROW_MS, rise: int = 1) -> None:
    """Schedule the messages of these numbers. The first is due in `after_ms`, each `rise` a millisecond."""
    first_ms = int(now_ms()) + after_ms
    for begin in range(start, end, PIECE):
        some = range(begin, min(begin + PIECE, end))
        scheduler.schedule([message(first_ms + (number - start) // rise, number, VALUE) for number in some])


def herd(scheduler: Scheduler, count: int) -> float:
    """Messages a second, of many due at the same moment; counted from then, or from the first if it came early."""
    found = in_time(scheduler, count, count // SLOWEST, lambda _number: 0)
    return count / max(found[-1] - min(found[0], 0.0), 1.0) * 1_000


def until_delivered(scheduler: Scheduler) -> None:
    """Schedules a message for now and waits for it. Others, which come once more after a kill, do not count."""
    due_ms, payload = message(int(now_ms()), 0, b"this one")
    came = threading.Event()

    def read() -> None:
        for arrived in scheduler.arrivals(MANY):
            if arrived == payload:
                came.set()
                return

    threading.Thread(target=read, daemon=True).start()
    scheduler.schedule([(due_ms, payload)])
    if not came.wait(PATIENCE_S):
        raise RuntimeError("the message did not come")
