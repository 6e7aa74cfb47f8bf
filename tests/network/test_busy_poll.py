"""The loop stays awake for the next request while that pays."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, cast

from ixion.broker.network import LATER, Answer, Request
from ixion.broker.network.busy_poll import BACK_OFF, GAP_NS, HALVED_AFTER, MAX_SKIPPED, SMALL, BusyPoll
from ixion.broker.network.counters import Counters
from ixion.language.protocol.codec.sink import Part
from ixion.language.wire.answer import Later
from tests.network.harness import echo, on_loop, request_bytes, running

WINDOW_NS = 100_000
STEP_NS = 20_000


class Loop:
    """A loop whose turns are taken one by one, each STEP_NS after the last."""

    def __init__(self, busy_poll_us: int = WINDOW_NS // 1000) -> None:
        self.now_ns = 1
        self.ready: list[Callable[[], None]] = []
        self.counters = Counters()
        self.busy_poll = BusyPoll(
            busy_poll_us, cast(asyncio.AbstractEventLoop, self), self.counters, lambda: self.now_ns
        )

    def call_soon(self, callback: Callable[[], None], *_: Any) -> None:
        self.ready.append(callback)

    def is_awake(self) -> bool:
        return bool(self.ready)

    def turn(self, step_ns: int = STEP_NS) -> None:
        self.now_ns += step_ns
        due, self.ready = self.ready, []
        for callback in due:
            callback()

    def until_asleep(self) -> int:
        """How long that takes, in ns."""
        begun = self.now_ns
        while self.is_awake():
            self.turn()
        return self.now_ns - begun

    def passed(self) -> int:
        """Answers that go by without a watch, when nobody comes in between."""
        number = 0
        while True:
            self.busy_poll.answered()
            if self.is_awake():
                return number
            number += 1


def test_awake_from_an_answer_to_the_next_request() -> None:
    loop = Loop()
    assert not loop.is_awake()
    for _ in range(1000):
        loop.busy_poll.answered()
        loop.turn()
        assert loop.is_awake()
        loop.busy_poll.heard()
    loop.turn()
    assert not loop.is_awake()  # nothing is owed by us, and nothing by them
    assert (loop.counters.busy_polls, loop.counters.busy_polls_in_vain) == (1, 0)


def test_polling_ends_when_no_request_comes() -> None:
    loop = Loop()
    loop.busy_poll.answered()
    assert WINDOW_NS <= loop.until_asleep() < WINDOW_NS + 2 * STEP_NS
    assert (loop.counters.busy_polls, loop.counters.busy_polls_in_vain) == (1, 1)


def test_answers_of_several_clients_lengthen_one_watch() -> None:
    loop = Loop()
    loop.busy_poll.answered()
    loop.turn()
    loop.busy_poll.answered()
    assert len(loop.ready) == 1
    assert loop.until_asleep() >= WINDOW_NS
    assert loop.counters.busy_polls == 1


def test_polls_without_a_request_get_rarer_until_a_request_comes() -> None:
    loop = Loop()
    passed = []
    for _ in range(12):
        passed.append(loop.passed())
        loop.until_asleep()
    assert passed == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, MAX_SKIPPED, MAX_SKIPPED]
    loop.passed()
    loop.busy_poll.heard()
    loop.turn()
    assert loop.passed() == 0
    loop.until_asleep()
    assert loop.passed() == 1


def put_aside(loop: Loop) -> None:
    loop.turn()
    loop.turn(GAP_NS + 1)
    assert not loop.is_awake()


def test_a_preempted_poll_backs_off_longer_each_time() -> None:
    loop = Loop()
    passed = []
    for _ in range(9):
        passed.append(loop.passed())
        put_aside(loop)
    assert passed == [0, 255, 511, 1023, 2047, 4095, 8191, 16_383, 16_383]
    assert BACK_OFF == (255, 16_383)
    assert loop.counters.busy_polls_in_vain == 9


def test_requests_that_come_make_up_for_it() -> None:
    loop = Loop()
    for _ in range(3):
        loop.passed()
        put_aside(loop)
    loop.passed()
    for _ in range(HALVED_AFTER + 1):
        loop.busy_poll.heard()
        loop.busy_poll.answered()
    put_aside(loop)
    assert loop.passed() == 1023  # would have been 2047
    for _ in range(2 * HALVED_AFTER):
        loop.busy_poll.heard()
        loop.busy_poll.answered()
    put_aside(loop)
    assert loop.passed() == 511


def test_those_before_the_last_time_do_not() -> None:
    loop = Loop()
    for _ in range(2):
        loop.passed()
        for _ in range(HALVED_AFTER - 1):
            loop.busy_poll.heard()
            loop.busy_poll.answered()
        put_aside(loop)
    assert loop.passed() == 511


def test_looking_for_long_is_no_gap() -> None:
    loop = Loop(busy_poll_us=4 * GAP_NS // 1000)
    loop.busy_poll.answered()
    assert loop.until_asleep() >= 4 * GAP_NS


def test_time_spent_on_a_request_is_no_gap() -> None:
    loop = Loop()
    loop.busy_poll.answered()
    loop.turn()
    loop.busy_poll.heard()
    loop.now_ns += 2 * GAP_NS
    loop.busy_poll.answered()
    loop.turn()
    assert loop.is_awake()


def test_it_can_be_left_to_sleep() -> None:
    loop = Loop(busy_poll_us=0)
    loop.busy_poll.answered()
    loop.busy_poll.heard()
    assert not loop.is_awake()
    assert loop.counters.busy_polls == 0


def cut(request: Request) -> Answer:
    """The correlation id, whatever was asked."""
    return [struct.pack(">ii", 4, request.frame.correlation_id)]


def stretch(request: Request) -> Answer:
    """Much, whatever was asked."""
    return [struct.pack(">ii", 4 + SMALL, request.frame.correlation_id) + bytes(SMALL)]


@on_loop
async def test_neither_request_nor_answer_may_be_large() -> None:
    for handle, payload in ((cut, bytes(SMALL)), (stretch, b"")):
        async with running(handle) as run:
            await (await run.connect()).ask(1, payload)
            assert run.server.snapshot().busy_polls == 0


@on_loop
async def test_a_request_ends_the_watch() -> None:
    """The answer to one that has to wait begins another. On a machine where others want the core it may be put aside;
    then it is tried again."""
    waiting: list[Request] = []

    def handle(request: Request) -> Answer | Later:
        if request.frame.correlation_id == 1:
            return cut(request)
        waiting.append(request)
        return LATER

    for _ in range(100):
        async with running(handle, busy_poll_us=10_000_000) as run:
            client = await run.connect()
            await client.ask(1)
            client.send(request_bytes(2))
            await run.until(lambda: bool(waiting))
            for _ in range(3):
                await asyncio.sleep(0)  # a look finds that it is over
            waiting.pop().respond(cast(list[Part], [struct.pack(">ii", 4, 2)]))
            await client.answer()
            seen = run.server.snapshot()
            if seen.busy_polls_in_vain == 0:
                assert seen.busy_polls == 2
                return
    raise AssertionError("the core was wanted a hundred times")


@on_loop
async def test_small_answers_are_watched_large_ones_are_not() -> None:
    async with running(echo) as run:
        client = await run.connect()
        await client.ask(1, bytes(SMALL))
        assert run.server.snapshot().busy_polls == 0
        await client.ask(2, b"small")
        assert run.server.snapshot().busy_polls == 1
        while run.server.snapshot().busy_polls_in_vain == 0:
            await asyncio.sleep(0.001)
        await client.ask(3)  # goes by, whether nobody had come or the loop had been put aside
        assert run.server.snapshot().busy_polls == 1


@on_loop
async def test_for_how_long_can_be_changed_at_run_time() -> None:
    async with running(echo) as run:
        client = await run.connect()
        run.change_limits(busy_poll_us=0)
        await client.ask(1)
        assert run.server.snapshot().busy_polls == 0
        run.change_limits(busy_poll_us=50)
        await client.ask(2)
        assert run.server.snapshot().busy_polls == 1
