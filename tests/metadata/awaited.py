"""A session for tests without an event loop: an awaited call returns at once.

session = Awaited(store.open_session(1_000))
assert run(elect(session, 1, 0)).epoch == 1
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ixion.broker.metadata.node import ANY_VERSION, Node, Operation, Result, Stat
from ixion.broker.metadata.session import Cancel, Watcher
from tests.metadata.engines import Session

T = TypeVar("T")


def run(call: Coroutine[Any, Any, T]) -> T:
    """What a call that never has to wait returns."""
    try:
        call.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("the call had to wait")


class Awaited:
    def __init__(self, inner: Session) -> None:
        self.inner = inner

    @property
    def session_id(self) -> int:
        return self.inner.session_id

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        return self.inner.create(path, data, ephemeral=ephemeral, sequential=sequential)

    async def get(self, path: str) -> Node:
        return self.inner.get(path)

    async def exists(self, path: str) -> Stat | None:
        return self.inner.exists(path)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        return self.inner.set(path, data, version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.inner.delete(path, version)

    async def children(self, path: str) -> list[str]:
        return self.inner.children(path)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return self.inner.multi(operations)

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        return self.inner.watch(path, watcher)

    @property
    def is_leased(self) -> bool:
        return self.inner.is_leased

    def on_expired(self, callback: Callable[[], None]) -> None:
        self.inner.on_expired(callback)

    async def close(self) -> None:
        self.inner.close()
