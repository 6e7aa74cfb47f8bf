"""A session of the embedded engine: the calls of `MetadataSession`, without await, on its store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.metadata.node import ANY_VERSION, Create, Delete, Node, Operation, Result, Set, Stat
from ixion.broker.metadata.path_rules import check_path
from ixion.broker.metadata.session import Cancel, Watcher

if TYPE_CHECKING:
    from ixion.broker.metadata.embedded import EmbeddedStore


class EmbeddedSession:
    def __init__(self, store: EmbeddedStore, session_id: int, timeout_ms: int, heard_ms: int) -> None:
        self._store = store
        self.session_id: Final = session_id
        self.timeout_ms: Final = timeout_ms
        self.heard_ms = heard_ms  # by the store's clock: the last call or heartbeat
        self.expiry_callbacks: list[Callable[[], None]] = []

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        (made,) = self._store.change(self, (Create(path, data, ephemeral, sequential),))
        return cast(str, made)

    def get(self, path: str) -> Node:
        with self._store.tree(self) as tree:
            return tree.get(path)

    def exists(self, path: str) -> Stat | None:
        with self._store.tree(self) as tree:
            return tree.stat(path)

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        (stat,) = self._store.change(self, (Set(path, data, version),))
        return cast(Stat, stat)

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._store.change(self, (Delete(path, version),))

    def children(self, path: str) -> list[str]:
        with self._store.tree(self) as tree:
            return tree.children(path)

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return self._store.change(self, operations)

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        check_path(path)
        with self._store.watches(self) as watches:
            watch = watches.add(path, self.session_id, watcher)

        def cancel() -> None:
            self._store.cancel(watch)

        return cancel

    @property
    def is_leased(self) -> bool:
        return self._store.holds(self)

    def on_expired(self, callback: Callable[[], None]) -> None:
        with self._store.watches(self):
            self.expiry_callbacks.append(callback)

    def heartbeat(self) -> None:
        """Keep the session from expiring."""
        self._store.heartbeat(self)

    def close(self) -> None:
        self._store.end(self)
