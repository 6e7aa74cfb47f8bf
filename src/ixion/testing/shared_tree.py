"""One metadata tree in memory for several brokers of a process, each with its own session and event loop.

A session lives while the loop of its broker runs: a timer of that loop sends heartbeats to the tree. The tree has no
thread: the timers of the other brokers notice a session without heartbeats for its timeout, and end it. If all loops
stop no session expires, as with a ZooKeeper that is gone.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import OURS_ALONE, encode_features
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.embedded_session import EmbeddedSession
from ixion.broker.metadata.errors import SessionExpiredError, StoreUnusableError
from ixion.broker.metadata.on_loop import EmbeddedEngine, LoopSession

FOR_EVER_MS: Final = 1 << 40


class SharedTree:
    def __init__(self) -> None:
        self._store = EmbeddedStore(IN_MEMORY)
        self._own = self._store.open_session(FOR_EVER_MS)
        self._own.create(paths.FEATURES, encode_features(OURS_ALONE))
        self._latest: dict[int, EmbeddedSession] = {}  # by broker id

    async def open_session(self, broker_id: int, timeout_ms: int) -> LoopSession:
        """Called on the loop of the broker, which keeps the session alive."""
        inner = self._store.open_session(timeout_ms)
        self._latest[broker_id] = inner
        loop = asyncio.get_running_loop()

        def beat() -> None:
            try:
                inner.heartbeat()
            except (SessionExpiredError, StoreUnusableError):
                return  # closed or expired; its owner has been called back
            self._store.expire_sessions()
            loop.call_later(timeout_ms / 3_000, beat)

        loop.call_later(timeout_ms / 3_000, beat)
        return LoopSession(EmbeddedEngine(self._store), inner)

    def expire(self, broker_id: int) -> None:
        """End the session of a broker as if its timeout had passed. On any thread."""
        session = self._latest.get(broker_id)
        if session is not None:
            self._store.expire(session)

    def registered(self) -> set[int]:
        """The brokers that are registered. On any thread."""
        return {int(name) for name in self._own.children(paths.BROKERS)}

    def close(self) -> None:
        with suppress(StoreUnusableError):
            self._store.close()
