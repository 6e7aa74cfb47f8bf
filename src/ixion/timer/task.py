"""A task with a delay, which a timer runs.

A task is itself the node of the ring in which it waits (two links), so adding one allocates nothing, and a waiting task
costs 112 bytes including its Python object. Fields with an underscore belong to its timer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, SupportsIndex

from ixion._native import mypyc_attr

if TYPE_CHECKING:
    from ixion.timer.bucket import Bucket
    from ixion.timer.timer import Timer

MAX_DELAY_MS: Final = 2**62
LONG_MS: Final = 2**61  # delays below it need no further check; comparing with it needs no big integers
CANCELLED: Final = -2  # instead of a deadline; real ones are -1 or later


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask:
    """Subclass it, write `run`, and give it to a timer.

    A task waits in one timer at a time; adding it again, there or elsewhere, moves it. It may be added again after it
    has run. A cancelled task cannot be added again.
    """

    __slots__ = ("_bucket", "_due_ms", "_next", "_prev", "_timer", "delay_ms")

    def __init__(self, delay_ms: SupportsIndex) -> None:
        self.delay_ms: int = delay_ms if isinstance(delay_ms, int) and 0 <= delay_ms < LONG_MS else checked(delay_ms)
        self._due_ms = 0  # or CANCELLED
        self._next: TimerTask | None = None  # neighbours in the bucket's ring; None if it is in none
        self._prev: TimerTask | None = None
        self._bucket: Bucket | None = None  # set exactly while the task waits
        self._timer: Timer | None = None  # the timer it was last added to

    def run(self) -> None:
        """Called when the delay has passed."""
        raise NotImplementedError(f"{type(self).__qualname__} needs a run() method")

    def cancel(self) -> bool:
        """Cancel the task for good, in O(1). True: it was waiting and will not run."""
        return cancel(self)

    @property
    def cancelled(self) -> bool:
        return self._due_ms == CANCELLED

    @property
    def waiting(self) -> bool:
        return self._bucket is not None

    def describe(self) -> str:
        """The name of the task in the log."""
        return type(self).__qualname__

    def waits_for(self) -> str:
        """What the task waits for, for people who look: made when they do, so it may take some microseconds."""
        return ""

    @property
    def deadline_ms(self) -> int:
        """When it is due, by the clock of its timer; only while it waits."""
        return self._due_ms


class CallTask(TimerTask):
    """A function as a task."""

    __slots__ = ("_args", "_fn")

    def __init__(self, delay_ms: SupportsIndex, fn: Callable[..., object], args: tuple[object, ...]) -> None:
        super().__init__(delay_ms)
        self._fn = fn
        self._args = args

    def run(self) -> None:
        self._fn(*self._args)

    def describe(self) -> str:
        return str(getattr(self._fn, "__qualname__", repr(self._fn)))


def cancel(task: TimerTask) -> bool:
    """`task.cancel()` as a function, which compiled code calls directly, whatever Python class the task has."""
    timer = task._timer
    if timer is None:
        task._due_ms = CANCELLED
        timer = task._timer  # read after `_due_ms` is set: an `add` that did not see that has set its timer here
        if timer is None:
            return False
    return timer.withdraw(task, True)


def adopt(task: TimerTask, timer: Timer) -> None:
    """Move the task to `timer`, out of another one in which it may wait."""
    previous = task._timer
    if previous is not timer:
        if previous is not None:
            previous.withdraw(task, False)
        task._timer = timer


def checked(delay_ms: SupportsIndex) -> int:
    """A delay of 0 to 2**62 ms unchanged, a negative one as -1 (due at once). Any other value is an error."""
    try:
        whole = operator.index(delay_ms)
    except TypeError:
        raise ValueError(f"delay_ms must be a whole number of milliseconds, not {delay_ms!r}") from None
    if whole > MAX_DELAY_MS:
        raise ValueError(f"delay_ms must be at most 2**62, not {whole}")
    return max(whole, -1)
