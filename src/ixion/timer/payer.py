"""Whose time it is: work of the event loop for one client that continues in later turns.

`PAYER.current` is called with the nanoseconds that later turns take, or None if nobody pays. A handler's own turn is
measured by its caller (`apis.metering`). The code that puts off the rest of the work takes the payer along: `Lane` for
its jobs, `timed` for coroutines. Loop thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from time import perf_counter_ns
from typing import Any, Final

Spend = Callable[[int], None]


class Payer:
    def __init__(self) -> None:
        self.current: Spend | None = None


PAYER: Final = Payer()


class Timed:
    """Awaits a coroutine and charges every step of it."""

    def __init__(self, steps: Coroutine[Any, Any, None], spend: Spend) -> None:
        self._steps = steps
        self._spend = spend

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._steps.__await__()
        value: Any = None
        fault: BaseException | None = None
        while True:
            before, PAYER.current = PAYER.current, self._spend
            begun_ns = perf_counter_ns()
            try:
                waits_for = steps.send(value) if fault is None else steps.throw(fault)
            except StopIteration:
                return
            finally:
                PAYER.current = before
                self._spend(perf_counter_ns() - begun_ns)
            value, fault = None, None
            try:
                value = yield waits_for
            except BaseException as error:
                fault = error


async def timed(steps: Coroutine[Any, Any, None], spend: Spend) -> None:
    await Timed(steps, spend)
