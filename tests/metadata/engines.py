"""The engines that must keep the contract of `ixion.metadata.session`. A further one adds a class and a line below."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ixion.metadata.embedded import FILE_NAME, IN_MEMORY, EmbeddedStore
from ixion.metadata.embedded_session import EmbeddedSession
from ixion.metadata.errors import SessionExpiredError
from ixion.metadata.session import MetadataSession

TIMEOUT_MS = 6_000


class Engine(Protocol):
    def session(self) -> MetadataSession: ...

    def let_expire(self, session: MetadataSession) -> None:
        """Makes the store believe that the holder of this session is gone; the others live on."""

    def settle(self) -> None:
        """Returns when every event of the changes made so far has been delivered."""

    def close(self) -> None: ...


class EmbeddedEngine:
    def __init__(self, file: str) -> None:
        self.now_ms = 1_000
        self.store = EmbeddedStore(file, clock_ms=lambda: self.now_ms, now_ms=lambda: 1_700_000_000_000 + self.now_ms)
        self.sessions: list[EmbeddedSession] = []

    def session(self) -> MetadataSession:
        self.sessions.append(self.store.open_session(TIMEOUT_MS))
        return self.sessions[-1]

    def let_expire(self, session: MetadataSession) -> None:
        self.now_ms += TIMEOUT_MS + 1
        for other in self.sessions:
            if other is not session:
                with suppress(SessionExpiredError):  # closed before
                    other.heartbeat()
        self.store.expire_sessions()

    def settle(self) -> None:
        pass  # this engine delivers before the call that made the change returns

    def close(self) -> None:
        self.store.close()


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "embedded": lambda directory: EmbeddedEngine(str(directory / FILE_NAME)),
    "in-memory": lambda directory: EmbeddedEngine(IN_MEMORY),
}
