"""The broker on a thread of its own, for whoever is not on an event loop."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ixion.broker.broker import Broker as RealBroker
from ixion.broker.parts import Options
from ixion.config.sources import load
from ixion.controller.topics import NewTopic
from ixion.model.errors import ErrorCode, KafkaError

T = TypeVar("T")

# What differs from a broker in production: a free port, a rebalance that does not wait for stragglers, small internal
# topics. Any of it can be set otherwise.
DEFAULTS: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.segment.delete.delay.ms": "0",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "16777216",
}


class Broker:
    """`settings` are the broker's, by Kafka's names: `Broker({"auto.create.topics.enable": "false"})`.

    With `data` given the data stays there, and a later broker finds it; else it is in a temporary directory, and gone
    with the broker.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, *, data: str | None = None) -> None:
        self._data = data
        self._temporary: str | None = None
        self._settings = {**DEFAULTS, **{name: _text(value) for name, value in (settings or {}).items()}}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._broker: RealBroker | None = None
        self.bootstrap = ""  # host:port, once it is started

    def start(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("the broker has been started already")
        data = self._data
        if data is None:
            data = self._temporary = tempfile.mkdtemp(prefix="ixion-")
        assignments = [f"{name}={value}" for name, value in {"log.dirs": data, **self._settings}.items()]
        broker_options = Options(allow_remote=True, metadata_in_memory=self._data is None)
        ready = threading.Event()
        failure: list[BaseException] = []

        async def run() -> None:
            broker = RealBroker(load(assignments=assignments), broker_options)
            try:
                await broker.start()
            except BaseException as error:
                failure.append(error)
                ready.set()
                return
            self._loop = asyncio.get_running_loop()
            self._broker = broker
            self._stopping = asyncio.Event()
            endpoint = broker.endpoints[0]
            self.bootstrap = f"{endpoint.host}:{endpoint.port}"
            ready.set()
            await self._stopping.wait()
            await broker.stop(drain_ms=1000)

        self._thread = threading.Thread(target=_run_loop, args=(run,), name="ixion-broker", daemon=True)
        self._thread.start()
        ready.wait()
        if failure:
            self._thread.join()
            self._thread = None
            self._remove()
            raise failure[0]
        return self

    def stop(self) -> None:
        """Stop as a broker should; what was written stays if `data` was given. Doing it twice is harmless."""
        thread, loop = self._thread, self._loop
        if thread is not None and loop is not None:
            loop.call_soon_threadsafe(self._stopping.set)
            thread.join()
        self._thread = self._loop = self._broker = None
        self._remove()

    def create_topic(self, name: str, partitions: int = 1, **config: Any) -> None:
        """Settings by their names with underscores for dots: `create_topic("t", 3, cleanup_policy="compact")`."""
        given = {key.replace("_", "."): _text(value) for key, value in config.items()}
        wish = NewTopic(name=name, partitions=partitions, replication=1, config=given)
        (outcome,) = self.call(lambda broker: broker.parts.controller.create_topics([wish]))
        if outcome.code != ErrorCode.NONE:
            raise KafkaError(outcome.code, outcome.message or "")

    def call(self, work: Callable[[RealBroker], Awaitable[T]]) -> T:
        """Do something on the broker's own loop, and wait for it."""
        loop, broker = self._loop, self._broker
        if loop is None or broker is None:
            raise RuntimeError("the broker is not running")

        async def run() -> T:
            return await work(broker)

        return asyncio.run_coroutine_threadsafe(run(), loop).result()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _remove(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None


def _run_loop(run: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await run()

    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
