"""A broker on a thread of its own, for tests and scripts.

    with Broker() as broker:                              # or start() and stop()
        broker.create_topic("orders", partitions=3)
        producer = Producer({"bootstrap.servers": broker.bootstrap})

    async with Broker() as broker: ...                    # the same on an event loop of your own

The data is in a temporary directory that is deleted at the end of the `with` block; with `memory=True` in a file system
in memory, if there is one with room; with `data=…` in a directory that stays, so that a later broker finds it. A broker
that is stopped or killed in between starts again at the same address, with its data.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata.sqlite_file import open_file, shared_in_memory
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.pages import PagesAt
from ixion.broker.startup.parts import Options
from ixion.broker.startup.process import loop_factory
from ixion.config.sources import Loaded, load
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.testing.standstill import where_it_is

T = TypeVar("T")

# Differences from a production broker: a free port, rebalances that start at once, small internal topics, and no
# retention by time, which half a minute after the start would delete records of tests with fixed, old timestamps. All
# of them can be set otherwise.
DEFAULTS: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.retention.hours": "-1",
    "log.segment.delete.delay.ms": "0",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "16777216",
}
# Every wait is bounded: a test that hangs shows nothing, an error names what it waited for. Kafka's own timeouts within
# a start or a stop are shorter (30 s for an answer of a controller).
PATIENCE_S: Final = 180.0
LOOK_S: Final = 1.0  # between two checks that the broker's thread is alive
MEMORY: Final = "/dev/shm"  # noqa: S108 - the data goes into a fresh directory there, which only this user can read
MEMORY_MIN: Final = 512 << 20  # bytes that must be free there; containers often have next to nothing
DRAIN_MS: Final = 1_000


class Broker:
    """`settings` are the broker's, by Kafka's names: `Broker({"auto.create.topics.enable": False})`."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        data: str | os.PathLike[str] | None = None,
        memory: bool = False,
        metrics: bool = False,
    ) -> None:
        if data is not None and memory:
            raise ValueError("data is kept in a directory or in memory; give one of data and memory")
        self._data = None if data is None else os.fspath(data)
        self._memory = memory
        self._metrics = metrics
        self._temporary: Temporary | None = None
        self._settings = {**DEFAULTS, **{name: _text(value) for name, value in (settings or {}).items()}}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._broker: RealBroker | None = None
        self._end: asyncio.Future[bool] | None = None  # True: cleanly
        self._begun: tuple[asyncio.AbstractEventLoop, RealBroker] | None = None  # set while it starts, too
        self._bootstrap = ""
        self._listeners = self._settings["listeners"]  # with the ports of the last start, to come back there
        self._pages_port = 0

    @property
    def running(self) -> bool:
        return self._broker is not None

    @property
    def bootstrap(self) -> str:
        """host:port, for `bootstrap.servers`."""
        self._running()
        return self._bootstrap

    @property
    def metrics_url(self) -> str:
        web = self._running()[1].parts.web
        if web is None:
            raise RuntimeError("this broker shows no metrics; make it with Broker(metrics=True)")
        return f"{web.url}/metrics"

    def start(self) -> Self:
        """Returns when the broker is ready. Raises if it cannot start, and leaves nothing behind.

        A broker that was stopped or killed comes back at its address, unless another process has taken the port.
        """
        if self._thread is not None:
            raise RuntimeError("the broker is running already; stop() it first")
        try:
            self._start()
        except StartupError:
            if (self._listeners, self._pages_port) == (self._settings["listeners"], 0):
                raise
            self._listeners, self._pages_port = self._settings["listeners"], 0
            self._start()
        return self

    def _start(self) -> None:
        ready: Future[None] = Future()
        try:
            loaded = self._load()
            self._thread = threading.Thread(target=self._live, args=(loaded, ready), name="ixion-broker", daemon=True)
            self._thread.start()
            self._await(ready, "start")
        except BaseException:
            if self._thread is not None:
                self._thread.join(0 if not ready.done() else PATIENCE_S)
            self._forget()
            if not self._bootstrap:  # it has never run
                self._delete()
            raise
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop cleanly. The data stays for the next start. Calling it twice is harmless."""
        self._leave(cleanly=True)

    def kill(self) -> None:
        """End as a killed process does: answer and write nothing more, and close no log. The next start finds what a
        crash leaves."""
        self._running()
        self._leave(cleanly=False)

    def create_topic(self, name: str, partitions: int = 1, **config: Any) -> None:
        """Settings have underscores for dots: `create_topic("t", 3, cleanup_policy="compact")`."""
        self._create_topic(name, partitions, 1, config)

    def _create_topic(self, name: str, partitions: int, replication: int, config: Mapping[str, Any]) -> None:
        given = {key.replace("_", "."): _text(value) for key, value in config.items()}
        wish = NewTopic(name=name, partitions=partitions, replication=replication, config=given)
        (outcome,) = self.call(lambda broker: broker.parts.controller.topics.create([wish]))
        if outcome.code != ErrorCode.NONE:
            raise KafkaError(outcome.code, outcome.message or "")

    def call(self, work: Callable[[RealBroker], Awaitable[T]]) -> T:
        """Run `work` on the broker's own loop, and wait for it."""
        loop, broker = self._running()
        if threading.current_thread() is self._thread:
            raise RuntimeError("this is the broker's own thread; await the work instead")

        async def run() -> T:
            return await work(broker)

        return self._await(asyncio.run_coroutine_threadsafe(run(), loop), "do what it was called for")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_for_good()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._end_for_good)

    # On the caller's thread.

    def _running(self) -> tuple[asyncio.AbstractEventLoop, RealBroker]:
        if self._loop is None or self._broker is None:
            raise RuntimeError("the broker is not running; use it within `with Broker() as broker:`, or start() it")
        return self._loop, self._broker

    def _load(self) -> Loaded:
        data = self._data
        if data is None:
            if self._temporary is None:
                self._temporary = Temporary(in_memory=self._memory)
            data = self._temporary.folder
        settings = {"log.dirs": data, **self._settings, "listeners": self._listeners}
        loaded = load(assignments=[f"{name}={value}" for name, value in settings.items()])
        if loaded.warnings:
            raise ValueError(
                "; ".join(loaded.warnings).replace(" in --set", "")
            )  # a typo, and a test that tests nothing
        return loaded

    def _leave(self, *, cleanly: bool) -> None:
        thread, loop, end = self._thread, self._loop, self._end
        if thread is not None and loop is not None and end is not None:

            def tell() -> None:
                if not end.done():
                    end.set_result(cleanly)

            try:
                loop.call_soon_threadsafe(tell)
            except RuntimeError:
                pass  # its loop is closed: the broker has ended
            thread.join(PATIENCE_S)
        left = self._where() if thread is not None and thread.is_alive() else ""
        self._forget()
        if left:
            raise TimeoutError(f"the broker did not {'stop' if cleanly else 'end'} within {PATIENCE_S:g} s: {left}")

    def _await(self, future: Future[T], what: str) -> T:
        """The result of a future that the broker's thread fills; TimeoutError if that thread ends or hangs."""
        end = time.monotonic() + PATIENCE_S
        while not future.done():
            thread = self._thread
            if thread is not None and thread.is_alive() and time.monotonic() < end:
                wait([future], LOOK_S)
            elif not future.done():
                left = self._where() if thread is not None and thread.is_alive() else "its thread has ended"
                raise TimeoutError(f"the broker did not {what} within {PATIENCE_S:g} s: {left}")
        return future.result()

    def _where(self) -> str:
        loop, broker = self._begun or (None, None)
        doing = "" if broker is None else broker.parts.doing
        return where_it_is(self._thread, loop, doing)

    def _forget(self) -> None:
        self._thread = self._loop = self._broker = self._end = self._begun = None
        atexit.unregister(self.stop)

    def _end_for_good(self) -> None:
        try:
            self.stop()
        finally:
            self._delete()

    def _delete(self) -> None:
        if self._temporary is not None:
            self._temporary.delete()
            self._temporary, self._bootstrap = None, ""

    # On the broker's thread.

    def _loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        return loop_factory()

    def _options(self) -> Options:
        return Options(
            allow_remote=True,
            metadata_file=None if self._temporary is None else self._temporary.metadata_file,
            pages=PagesAt(port=self._pages_port, required=True) if self._metrics else None,
        )

    def _live(self, loaded: Loaded, ready: Future[None]) -> None:
        try:
            with asyncio.Runner(loop_factory=self._loop_factory()) as runner:
                runner.run(self._serve(loaded, ready))
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def _serve(self, loaded: Loaded, ready: Future[None]) -> None:
        broker = RealBroker(loaded, self._options())
        self._begun = (asyncio.get_running_loop(), broker)
        await broker.start()
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.create_future()
        self._broker = broker
        endpoint = broker.endpoints[0]
        self._bootstrap = f"{endpoint.host}:{endpoint.port}"
        self._listeners = ",".join(
            f"{given[:-1]}{bound.port}" if given.endswith(":0") else given
            for given, bound in zip(self._settings["listeners"].split(","), broker.endpoints, strict=True)
        )
        self._pages_port = 0 if broker.parts.web is None else broker.parts.web.port
        ready.set_result(None)
        if await self._end:
            await broker.stop(DRAIN_MS)
        else:
            await broker.abandon()


class Temporary:
    """The data of a broker without a directory of its own. It is deleted with this object, or before by `delete`.

    The metadata is in memory, which saves some flushes at every start. Holding a connection keeps it over a restart.
    """

    def __init__(self, *, in_memory: bool) -> None:
        self.folder: Final = tempfile.mkdtemp(prefix="ixion-", dir=_memory() if in_memory else None)
        self.metadata_file: Final = shared_in_memory(os.path.basename(self.folder))
        self.delete: Final = weakref.finalize(self, _delete, self.folder, open_file(self.metadata_file))


def _delete(folder: str, metadata: sqlite3.Connection) -> None:
    metadata.close()
    shutil.rmtree(folder, ignore_errors=True)


def _memory() -> str | None:
    """A file system in memory with room for tests; None if there is none."""
    try:
        status = os.statvfs(MEMORY)
    except OSError:
        return None
    return MEMORY if status.f_bavail * status.f_frsize >= MEMORY_MIN and os.access(MEMORY, os.W_OK) else None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
