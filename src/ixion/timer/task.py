"""What a timer runs: a task with a delay, which is its own entry in the wheel.

A task is the node of the list it waits in (two links), so adding one allocates nothing and a waiting task costs
about 120 bytes, its Python object included. The fields behind an underscore belong to the timer that holds it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, SupportsIndex

from ixion._native import i64, mypyc_attr

if TYPE_CHECKING:
    from ixion.timer.bucket import Bucket
    from ixion.timer.timer import Timer

MAX_DELAY_MS: Final[i64] = 2**62


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask:
    """Subclass it, write `run`, and give it to a timer.

    A task waits in one timer at a time; adding it again, there or elsewhere, moves it. It may be added again after it
    has run. Once cancelled it is refused for good.
    """

    __slots__ = ("_bucket", "_cancelled", "_due_ms", "_next", "_prev", "_timer", "delay_ms")

    def __init__(self, delay_ms: SupportsIndex) -> None:
        self._next: TimerTask | None = None  # neighbours in the bucket's ring; None while it is in no ring
        self._prev: TimerTask | None = None
        self.delay_ms: i64 = checked_delay(delay_ms)
        self._due_ms: i64 = 0
        self._bucket: Bucket | None = None  # set exactly while the task waits
        self._timer: Timer | None = None  # the timer it was last added to
        self._cancelled = False

    def run(self) -> None:
        """What happens when the time has come."""
        raise NotImplementedError(f"{type(self).__qualname__} needs a run() method")

    def cancel(self) -> bool:
        """Take the task out of its timer, in O(1), and refuse it from now on. True: it was waiting and will not run."""
        timer = self._timer
        if timer is None:
            self._cancelled = True
            timer = self._timer  # read after the flag was set: an add that missed the flag has left its timer here
            if timer is None:
                return False
        return timer.withdraw(self, True)

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def waiting(self) -> bool:
        return self._bucket is not None

    def __call__(self) -> None:
        """Run the task as its timer would: an exception is logged and counted, and goes no further."""
        timer = self._timer
        if timer is None:
            self.run()
        else:
            timer.run_task(self)

    def describe(self) -> str:
        """The name under which failures are logged."""
        return type(self).__qualname__


class CallTask(TimerTask):
    """A plain function as a task."""

    __slots__ = ("_args", "_fn")

    def __init__(self, delay_ms: SupportsIndex, fn: Callable[..., object], args: tuple[object, ...]) -> None:
        super().__init__(delay_ms)
        self._fn = fn
        self._args = args

    def run(self) -> None:
        self._fn(*self._args)

    def describe(self) -> str:
        return str(getattr(self._fn, "__qualname__", repr(self._fn)))


def checked_delay(delay_ms: SupportsIndex) -> i64:
    """A delay as a machine integer. Below zero means at once; a fraction or an absurd size is an error."""
    if isinstance(delay_ms, int):
        whole = delay_ms
    else:
        try:
            whole = operator.index(delay_ms)
        except TypeError:
            raise ValueError(f"delay_ms must be a whole number of milliseconds, not {delay_ms!r}") from None
    if whole < 0:
        return -1
    try:
        checked: i64 = whole
    except (OverflowError, ValueError):
        checked = MAX_DELAY_MS + 1  # beyond what a machine integer holds
    if checked > MAX_DELAY_MS:
        raise ValueError(f"delay_ms must be at most 2**62, not {whole}")
    return checked
