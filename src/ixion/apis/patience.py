"""How long a client waits for the controller.

The work goes on when the time is over; a client that is told REQUEST_TIMED_OUT asks later what has become of it. With
a timeout of 0 or less there is nothing to wait for beyond the work itself, so it is answered when it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ixion.model.errors import ErrorCode, KafkaError
from ixion.timer.timer import Timer

T = TypeVar("T")

_left_behind: set[asyncio.Future[Any]] = set()  # the loop itself holds them weakly only


async def in_time(timer: Timer, timeout_ms: int, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; KafkaError REQUEST_TIMED_OUT if that takes too long."""
    if timeout_ms <= 0:
        return await work
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    over: asyncio.Future[None] = loop.create_future()

    def ring() -> None:
        if not over.done():
            over.set_result(None)

    alarm = timer.call_later(timeout_ms, ring)
    try:
        await asyncio.wait((task, over), return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
    if task.done():
        return task.result()
    _left_behind.add(task)
    task.add_done_callback(_left_behind.discard)
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not done within {timeout_ms} ms; it goes on")
