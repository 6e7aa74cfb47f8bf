"""A broker started and stopped on the test's own loop, and the contents of a directory.

Use it to reach into the parts of a broker, or to give it a faulty disk. If only a running broker is needed, use the
fixture `ixion_broker`; for a process of its own, `tests/broker/served.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from ixion.broker.log.files import Files
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.parts import Options
from ixion.config.sources import load

T = TypeVar("T")


def broker_on(*paths: Path, **settings: str) -> Broker:
    """Settings by their names with underscores for dots."""
    return broker_with(Files(), *paths, **settings)


def broker_with(files: Files, *paths: Path, **settings: str) -> Broker:
    """The same on a disk of the test's own."""
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.cleaner.dedupe.buffer.size": "16777216"}
    given |= {name.replace("_", "."): value for name, value in settings.items()}
    assignments = [f"log.dirs={','.join(str(path) for path in paths)}", *(f"{k}={v}" for k, v in given.items())]
    return Broker(load(assignments=assignments), Options(files=files))


@asynccontextmanager
async def running(*paths: Path, **settings: str) -> AsyncIterator[Broker]:
    broker = broker_on(*paths, **settings)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop(drain_ms=100)


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work(), 30)

    return asyncio.run(bounded())


def contents(*paths: Path) -> dict[str, bytes | None]:
    """Every file with what is in it, every directory; links and sizes come along with that."""
    found: dict[str, bytes | None] = {}
    for path in paths:
        if not path.exists():
            found[str(path)] = b"(missing)"
            continue
        for entry in sorted(path.rglob("*")):
            found[str(entry)] = None if entry.is_dir() else entry.read_bytes()
    return found
