"""A ZooKeeper session is replaced although the attempts to do so fail half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ixion.broker.metadata.errors import ConnectionLostError
from ixion.broker.startup import renewing
from ixion.broker.startup.renewing import Renewal
from tests.broker.support import run


class Session:
    def __init__(self, number: int) -> None:
        self.session_id = number
        self.closed = False
        self.expire: Callable[[], None] = lambda: None

    def on_expired(self, callback: Callable[[], None]) -> None:
        self.expire = callback

    async def close(self) -> None:
        self.closed = True


class Stage:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, begin: Callable[[Session], Awaitable[None]]) -> None:
        self.sessions = [Session(0)]
        self.registered: list[tuple[int, set[int]]] = []  # the session, and those before it
        monkeypatch.setattr(renewing, "PAUSE_S", 0)
        monkeypatch.setattr(renewing, "register", self._register)
        self.parts = SimpleNamespace(
            loop=asyncio.get_running_loop(), session=self.sessions[0], on_new_session=[], broker_epoch=1
        )
        controller = SimpleNamespace(begin=begin, end=self._end)
        self.renewal = Renewal(cast(Any, self.parts), cast(Any, controller), cast(Any, self._open))

    async def _end(self) -> None:
        """Nothing is queued."""

    async def _open(self) -> Session:
        self.sessions.append(Session(len(self.sessions)))
        return self.sessions[-1]

    async def _register(self, parts: Any, earlier: set[int]) -> None:
        self.registered.append((parts.session.session_id, set(earlier)))

    async def renewed(self, times: int) -> None:
        while self.renewal.renewed < times:
            await asyncio.sleep(0)


def test_a_session_whose_election_failed_is_closed_before_the_next_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(session: Session) -> None:
        if session.session_id == 1:
            raise ConnectionLostError("/controller", "lost")

    async def work() -> None:
        stage = Stage(monkeypatch, begin)
        stage.renewal.expired()
        await stage.renewed(1)
        assert stage.registered == [(1, {0}), (2, {0, 1})], "either may have left a registration"
        assert [session.closed for session in stage.sessions] == [False, True, False]

    run(work)


def test_a_session_that_expires_while_it_is_registered_is_replaced_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(session: Session) -> None:
        if session.session_id == 1:
            session.expire()

    async def work() -> None:
        stage = Stage(monkeypatch, begin)
        stage.renewal.expired()
        await stage.renewed(1)
        assert stage.parts.session is stage.sessions[2]
        stage.sessions[2].expire()
        await stage.renewed(2)
        assert stage.parts.session is stage.sessions[3]
        stage.sessions[2].expire()  # of a session that was replaced long ago
        assert stage.renewal._task is None

    run(work)
