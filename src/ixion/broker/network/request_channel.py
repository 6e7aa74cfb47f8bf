"""The bounded queue between processors and handlers, and the handlers.

It runs on the loop, without threads: if the queue is empty, a request is handled in the call that brought it. Requests
that come while one is handled are queued, which keeps the stack flat and is fair to all connections. After a slice of
requests, or of time, the loop polls its sockets.

A handler that returns an awaitable counts as one of num.io.threads until the awaitable is done. When all of these are
busy, requests queue up, and when `queued.max.requests` of them wait, we stop reading connections. So an operation that
waits for an event must return LATER, or a few of them would stop the broker.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from ixion._native import i64
from ixion.broker.network.request import Answer, Handler, Later, Request
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.timer.clock import system_clock
from ixion.timer.stall_watch import StallWatch
from ixion.timer.turns import TURN_NS

if TYPE_CHECKING:
    from ixion.broker.network.connection import Connection

SLICE: Final = 64  # requests handled before the loop gets its turn, however quick they are

log = logging.getLogger("ixion.broker.network")


class RequestChannel:
    def __init__(
        self,
        name: str,
        handle: Handler,
        *,
        loop: asyncio.AbstractEventLoop,
        stalls: StallWatch,
        queued_max: int,
        handlers: int,
    ) -> None:
        self.name = name
        self.queued_max: i64 = queued_max
        self.handlers: i64 = handlers
        self.busy: i64 = 0  # handlers that wait for an awaitable
        self._handle = handle
        self._loop = loop
        self._stalls = stalls
        self._queue: deque[Request] = deque()
        self._waiting: dict[Connection, None] = {}  # connections that wait for room
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        self._scheduled = False

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        return len(self._queue) >= self.queued_max

    def wait(self, connection: Connection) -> None:
        """Wake the connection when there is room in the queue."""
        self._waiting[connection] = None

    def forget(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)

    def send_request(self, request: Request) -> None:
        self._queue.append(request)
        if not self._draining:
            self._drain()

    def resize(self, queued_max: int, handlers: int) -> None:
        self.queued_max = queued_max
        self.handlers = handlers
        self._drain()

    async def stop(self) -> None:
        """Drop waiting requests and cancel running handlers."""
        for request in self._queue:
            request.release()
        self._queue.clear()
        self._waiting.clear()
        running = list(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _drain(self) -> None:
        self._scheduled = False
        if self._draining:
            return
        self._draining = True
        queue = self._queue
        until_ns: i64 = 0
        try:
            for _ in range(SLICE):
                if not queue or self.busy >= self.handlers:
                    break
                self._run(queue.popleft())
                if self._waiting:
                    self._let_in()
                if queue:  # usually there is only one request
                    now_ns: i64 = system_clock()
                    if until_ns == 0:
                        until_ns = now_ns + TURN_NS
                    elif now_ns >= until_ns:
                        break
        finally:
            self._draining = False
        if queue and self.busy < self.handlers and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._drain)

    def _let_in(self) -> None:
        while self._waiting and not self.full:
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            connection.go_on()

    def _run(self, request: Request) -> None:
        self._stalls.api_key = request.frame.api_key
        try:
            outcome = self._handle(request)
            if outcome is None:
                request.no_response()
            elif isinstance(outcome, list):
                request.respond(outcome)
            elif not isinstance(outcome, Later):
                self.busy += 1
                task = self._loop.create_task(self._finish(request, outcome))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except Exception as error:
            self.failed(request, error)

    async def _finish(self, request: Request, pending: Awaitable[Answer]) -> None:
        try:
            outcome = await pending
            if outcome is None:
                request.no_response()
            elif isinstance(outcome, list):
                request.respond(outcome)
        except asyncio.CancelledError:
            request.release()
            raise
        except Exception as error:
            self.failed(request, error)
        finally:
            self.busy -= 1
            self._drain()

    def failed(self, request: Request, error: Exception) -> None:
        """The handler raised: close the connection."""
        request.release()
        connection = request.connection
        connection.processor.plane.shared.times.note_failed(request.frame.api_key)
        if isinstance(error, (DecodeError, UnsupportedVersionError)):
            connection.refuse("bad_request", str(error))
            return
        frame = request.frame
        log.error(
            "API key %d version %d from %s failed", frame.api_key, frame.api_version, request.address, exc_info=error
        )
        connection.close("handler_failed")
