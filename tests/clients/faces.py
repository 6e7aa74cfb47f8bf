"""Both faces of our clients behind one set of calls, so that one scenario runs through each.

    with BLOCKING.consumer(bootstrap, group="g", topics=["t"]) as consumer:     # or AIO
        consumer.poll(5.0)
        later = consumer.start("poll", 5.0)                                     # a call under way: a future

The asyncio clients live in a loop of their own thread, which runs all the time, as in a program.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from types import TracebackType
from typing import Any

from ixion import clients
from ixion.clients import aio


class Blocking:
    """A blocking client. `start` makes the call on another thread."""

    def __init__(self, make: Callable[..., Any], *arguments: Any, **settings: Any) -> None:
        self.client = make(*arguments, **settings)
        self._pool = ThreadPoolExecutor(4)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self.client, name)
        return found

    def start(self, name: str, *arguments: Any, **more: Any) -> Future[Any]:
        return self._pool.submit(getattr(self.client, name), *arguments, **more)

    def wait(self, delivery: Any, timeout_s: float) -> Any:
        return delivery.result(timeout_s)

    def records(self, count: int) -> Iterator[Any]:
        """So many records of a consumer, one by one."""
        return islice(self.client, count)

    def __enter__(self) -> Any:
        self.client.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.__exit__(kind, error, at)
        self._pool.shutdown()


class InLoop:
    """The same for a client on asyncio."""

    def __init__(self, make: Callable[..., Any], *arguments: Any, **settings: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

        async def made() -> Any:
            return make(*arguments, **settings)

        try:
            self.client = self._run(made())
        except BaseException:
            self._end()
            raise

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments, **more: self.start(name, *arguments, **more).result()

    def start(self, name: str, *arguments: Any, **more: Any) -> Future[Any]:
        async def call() -> Any:
            found = getattr(self.client, name)(*arguments, **more)
            return await found if inspect.isawaitable(found) and not hasattr(found, "done") else found

        return asyncio.run_coroutine_threadsafe(call(), self._loop)

    def records(self, count: int) -> Iterator[Any]:
        """So many records of a consumer, one by one."""
        found = self.client.__aiter__()
        try:
            for _ in range(count):
                yield self._run(found.__anext__())
        finally:
            self._run(found.aclose())

    def transaction(self) -> Any:
        return BlockInLoop(self.client.transaction(), self._run)

    def wait(self, delivery: Any, timeout_s: float) -> Any:
        async def settled() -> Any:
            async with asyncio.timeout(timeout_s):
                return await delivery

        return self._run(settled())

    def __enter__(self) -> Any:
        self._run(self.client.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._run(self.client.__aexit__(kind, error, at))
        finally:
            self._end()

    def _run(self, call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockInLoop:
    """An `async with` as a `with`."""

    def __init__(self, block: Any, run: Callable[[Any], Any]) -> None:
        self._block = block
        self._run = run

    def __enter__(self) -> None:
        self._run(self._block.__aenter__())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._run(self._block.__aexit__(kind, error, at))


class Face:
    def __init__(self, name: str, wrap: Callable[..., Any], source: Any) -> None:
        self.name = name
        self._wrap = wrap
        self._source = source

    def consumer(self, *arguments: Any, **settings: Any) -> Any:
        return self._wrap(self._source.Consumer, *arguments, **settings)

    def share_consumer(self, *arguments: Any, **settings: Any) -> Any:
        return self._wrap(self._source.ShareConsumer, *arguments, **settings)

    def producer(self, *arguments: Any, **settings: Any) -> Any:
        return self._wrap(self._source.Producer, *arguments, **settings)

    def admin(self, *arguments: Any, **settings: Any) -> Any:
        return self._wrap(self._source.Admin, *arguments, **settings)


BLOCKING = Face("blocking", Blocking, clients)
AIO = Face("asyncio", InLoop, aio)
FACES = (BLOCKING, AIO)
