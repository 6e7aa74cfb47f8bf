"""A handler with a long list lets others have their turn, and stops when its client has gone; one that waits for the
controller may fail in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ixion.broker.apis.begin import begun
from ixion.broker.apis.call import Call
from ixion.broker.metadata.errors import SessionExpiredError
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatResponse
from ixion.language.wire.answer import LATER
from ixion.timer.lane import Lane
from ixion.timer.turns import Steps

ANSWER = HeartbeatResponse(error_code=0)
ENDLESS = 10_000_000


class Client:
    """What a handler needs of a call, and a loop whose next turn comes when the test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.answers: list[object] = []
        self.faults: list[Exception] = []
        self.cancel: Callable[[], None] | None = None
        self.request = SimpleNamespace(lane=Lane(self.soon.append), fail=self.faults.append)

    def respond(self, answer: object) -> None:
        self.answers.append(answer)

    def on_gone(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel

    def handle(self, handler: Any) -> object:
        return begun(handler)(cast(Call, self))

    def turn(self) -> bool:
        if not self.soon:
            return False
        self.soon.pop(0)()
        return True


@pytest.fixture
def client() -> Client:
    return Client()


def counting(count: int, done: list[int]) -> Callable[[Call], Steps[HeartbeatResponse]]:
    def handle(_call: Call) -> Steps[HeartbeatResponse]:
        for number in range(count):
            done.append(number)
            yield
        return ANSWER

    return handle


def test_short_work_is_answered_at_once(client: Client) -> None:
    done: list[int] = []
    assert client.handle(counting(3, done)) is ANSWER
    assert done == [0, 1, 2]
    assert client.soon == []


def test_long_work_is_answered_later_after_turns_of_the_loop(client: Client) -> None:
    done: list[int] = []
    assert client.handle(counting(300_000, done)) is LATER
    assert 0 < len(done) < 300_000
    turns = 0
    while client.turn():
        turns += 1
    assert turns > 1
    assert client.answers == [ANSWER]


def test_work_for_a_client_that_has_gone_stops(client: Client) -> None:
    done: list[int] = []
    client.handle(counting(ENDLESS, done))
    assert client.cancel is not None
    client.cancel()
    so_far = len(done)
    while client.turn():
        pass
    assert len(done) == so_far
    assert client.answers == []


def test_a_fault_in_a_later_turn_ends_the_request(client: Client) -> None:
    def handle(_call: Call) -> Steps[HeartbeatResponse]:
        for _ in range(300_000):
            yield
        raise ValueError("broken")

    assert client.handle(handle) is LATER
    while client.turn():
        pass
    assert [str(fault) for fault in client.faults] == ["broken"]


@pytest.mark.parametrize(
    ("fault", "level", "has_traceback"),
    [(SessionExpiredError("/", "session 0x1 is over"), logging.WARNING, False), (ValueError("x"), logging.ERROR, True)],
)
def test_an_expired_session_is_one_line_and_a_bug_has_a_traceback(
    caplog: pytest.LogCaptureFixture, fault: Exception, level: int, has_traceback: bool
) -> None:
    """Found by the simulator: a broker gets LeaderAndIsr after its session has expired. The controller asks again."""
    failed: list[bool] = []
    call: Any = SimpleNamespace(
        header=SimpleNamespace(api_key=4), address="10.0.0.1", fail=lambda: failed.append(True), respond=None
    )

    async def handle(_: Call) -> Any:
        raise fault

    async def work() -> None:
        assert begun(handle)(cast(Call, call)) is LATER
        while not failed:
            await asyncio.sleep(0)

    asyncio.run(work())
    (record,) = caplog.records
    assert (record.levelno, bool(record.exc_info)) == (level, has_traceback)
    assert "API key 4 from 10.0.0.1" in record.getMessage()
