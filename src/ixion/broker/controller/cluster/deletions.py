"""Lets callers wait until topics are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deletions:
    """`changed` is called whenever a deletion makes progress or gets stuck."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def changed(self) -> None:
        self._waiting = [(is_over, waiter) for is_over, waiter in self._waiting if not self._notified(is_over, waiter)]

    async def until(self, is_over: Callable[[], bool]) -> None:
        if not is_over():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((is_over, waiter))
            await waiter

    def close(self) -> None:
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    def _notified(self, is_over: Callable[[], bool], waiter: asyncio.Future[None]) -> bool:
        if waiter.done():
            return True
        if not is_over():
            return False
        waiter.set_result(None)
        return True
