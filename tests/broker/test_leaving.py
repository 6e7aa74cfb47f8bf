"""A broker that stops serves on until its clients have gone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ixion.broker.startup import leaving


class Server:
    """Says that a request came between two checks, so many times."""

    def __init__(self, requests: int) -> None:
        self.left = requests
        self.heard = 0

    def snapshot(self) -> Any:
        if self.left:
            self.left -= 1
            self.heard += 1
        return SimpleNamespace(requests=self.heard)


async def see_off(server: Server) -> None:
    parts = SimpleNamespace(loop=asyncio.get_running_loop(), server=server)
    await leaving._see_off(cast(Any, parts))


def test_it_waits_until_no_request_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "QUIET_S", 0.0)
    monkeypatch.setattr(leaving, "SEE_OFF_S", 60.0)
    server = Server(requests=20)
    asyncio.run(see_off(server))
    assert server.heard == 20


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "QUIET_S", 0.001)
    monkeypatch.setattr(leaving, "SEE_OFF_S", 0.02)
    server = Server(requests=1_000_000_000)
    asyncio.run(asyncio.wait_for(see_off(server), 60))
    assert server.left
