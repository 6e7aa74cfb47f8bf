"""One request in flight per connection; answers in the order of the requests."""

from __future__ import annotations

import asyncio
import struct
import time

from ixion.broker.network import LATER, Answer, Request
from ixion.timer.turns import TURN_NS
from tests.network.harness import Running, echo, on_loop, request_bytes, running


@on_loop
async def test_a_request_is_answered() -> None:
    async with running() as run:
        client = await run.connect()
        assert await client.ask(7, b"hello") == b"hello"
        assert await client.ask(8, bytes(300_000)) == bytes(300_000)
        snapshot = run.server.snapshot()
        assert (snapshot.requests, snapshot.responses) == (2, 2)
        assert snapshot.bytes_in == snapshot.bytes_out + 2 * 8
        assert snapshot.pool_used == 0


@on_loop
async def test_a_request_knows_where_it_came_from() -> None:
    seen: list[Request] = []

    def handle(request: Request) -> Answer:
        seen.append(request)
        return echo(request)

    async with running(handle) as run:
        client = await run.connect()
        await client.ask(1)
        host, port = client.writer.get_extra_info("sockname")
        request = seen[0]
        assert (request.listener, request.address) == ("PLAINTEXT", "127.0.0.1")
        assert request.connection.id == f"127.0.0.1:{run.server.port('PLAINTEXT')}-{host}:{port}-0-0"
        assert request.received_ns == run.clock()
        assert (request.frame.api_key, request.frame.api_version, request.frame.size) == (18, 0, 12)


@on_loop
async def test_a_hundred_requests_at_once_are_handled_one_by_one_and_answered_in_order() -> None:
    waiting: list[Request] = []

    def park(request: Request) -> Answer:
        waiting.append(request)
        return LATER

    async with running(park) as run:
        client = await run.connect()
        client.send(b"".join(request_bytes(number, bytes(number * 50)) for number in range(100)))
        for number in range(100):
            await run.until(lambda: bool(waiting))
            for _ in range(5):
                await asyncio.sleep(0)
            assert [request.frame.correlation_id for request in waiting] == [number]  # never two
            request = waiting.pop()
            answer = echo(request)
            assert isinstance(answer, list)
            request.respond(answer)
            assert await client.answer() == (number, bytes(number * 50))


@on_loop
async def test_a_handler_that_answers_at_once_keeps_the_order_too() -> None:
    async with running() as run:
        clients = [await run.connect() for _ in range(5)]
        for client in clients:
            client.send(b"".join(request_bytes(number) for number in range(1000)))
        for client in clients:
            assert [(await client.answer())[0] for _ in range(1000)] == list(range(1000))


@on_loop
async def test_slow_and_quick_awaitables_keep_the_order_of_their_connection() -> None:
    async def handle(request: Request) -> Answer:
        for _ in range(request.frame.correlation_id % 7):
            await asyncio.sleep(0)
        return echo(request)

    async with running(handle) as run:
        clients = [await run.connect() for _ in range(5)]
        for client in clients:
            client.send(b"".join(request_bytes(number) for number in range(50)))
        for client in clients:
            assert [(await client.answer())[0] for _ in range(50)] == list(range(50))


@on_loop
async def test_a_connection_with_much_to_ask_leaves_the_others_their_turn() -> None:
    turns: list[str] = []

    def handle(request: Request) -> Answer:
        turns.append("greedy" if request.frame.correlation_id >= 0 else "modest")
        return echo(request)

    async with running(handle) as run:
        greedy, modest = await run.connect(), await run.connect()
        await modest.ask(-1)
        turns.clear()
        greedy.send(b"".join(request_bytes(number) for number in range(5000)))
        modest.send(request_bytes(-2))
        await modest.answer()
        assert turns.count("greedy") < 5000
        for _ in range(5000):
            await greedy.answer()


@on_loop
async def test_no_response_lets_the_next_request_come() -> None:
    def handle(request: Request) -> Answer:
        return None if request.frame.correlation_id < 5 else echo(request)

    async with running(handle) as run:
        client = await run.connect()
        client.send(b"".join(request_bytes(number) for number in range(6)))
        assert await client.answer() == (5, b"")
        assert run.server.snapshot().responses == 1


@on_loop
async def test_a_client_that_stops_sending_gets_its_answers_and_then_the_end() -> None:
    held: list[Request] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        return LATER

    async with running(handle) as run:
        client = await run.connect()
        client.send(request_bytes(0) + request_bytes(1))
        client.writer.write_eof()
        for number in range(2):
            await run.until(lambda: bool(held))
            request = held.pop()
            request.respond([struct.pack(">ii", 4, request.frame.correlation_id)])
            assert await client.answer() == (number, b"")
        assert await client.closed()


@on_loop
async def test_a_client_that_stops_sending_gets_an_answer_that_waits_for_others() -> None:
    held: list[Request] = []
    cancelled: list[int] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        request.release()
        request.on_gone(lambda: cancelled.append(request.frame.correlation_id))
        return LATER

    async with running(handle, half_closed_ms=5_000) as run:
        client = await run.connect()
        client.send(request_bytes(0) + request_bytes(1))
        client.writer.write_eof()
        for number in range(2):
            await run.until(lambda: bool(held))
            request = held.pop()
            await pass_ms(run, 4_999)
            request.respond([struct.pack(">ii", 4, request.frame.correlation_id)])
            assert await client.answer() == (number, b"")
        assert await client.closed()
        assert cancelled == []


@on_loop
async def test_what_waits_for_a_client_that_stopped_sending_is_cancelled_later() -> None:
    held: list[Request] = []
    cancelled: list[int] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        request.release()
        if len(held) == 2:
            request.on_gone(lambda: cancelled.append(request.frame.correlation_id))
        return LATER

    async with running(handle, half_closed_ms=5_000) as run:
        client = await run.connect()
        client.send(request_bytes(0) + request_bytes(1))
        client.writer.write_eof()
        await run.until(lambda: bool(held))
        await pass_ms(run, 60_000)  # the first waits for nobody: it is answered, however long that takes
        held[0].respond([struct.pack(">ii", 4, 0)])
        assert await client.answer() == (0, b"")
        await run.until(lambda: len(held) == 2)
        await pass_ms(run, 5_000)
        assert await client.closed()
        assert cancelled == [1]
        assert run.closed("peer") == 1


async def pass_ms(run: Running, ms: int) -> None:
    """In steps: a turn of the loop for the end of a client's stream to come, then the time in pieces."""
    for _ in range(10):
        await asyncio.sleep(0)
    for _ in range(10):
        run.clock.advance(ms // 10)
        await asyncio.sleep(0)
    run.clock.advance(ms % 10)
    for _ in range(3):
        await asyncio.sleep(0)


@on_loop
async def test_an_answer_to_a_client_that_has_gone_is_dropped() -> None:
    held: list[Request] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        return LATER

    async with running(handle) as run:
        client = await run.connect()
        client.send(request_bytes(0, bytes(1000)))
        await run.until(lambda: bool(held))
        client.close()
        for _ in range(5):
            await asyncio.sleep(0)
        assert run.server.snapshot().pool_used == 1016  # as it came: size, header, payload
        held[0].respond([b"\0\0\0\4\0\0\0\0"])
        assert run.server.snapshot().pool_used == 0
        await run.until(lambda: run.count() == 0)


@on_loop
async def test_a_second_answer_is_an_error() -> None:
    errors: list[str] = []

    def handle(request: Request) -> Answer:
        answer = echo(request)
        assert isinstance(answer, list)
        request.respond(answer)
        try:
            request.respond(answer)
        except RuntimeError as error:
            errors.append(str(error))
        return LATER

    async with running(handle) as run:
        client = await run.connect()
        await client.ask(1)
        assert errors == ["a request of API key 18 was answered twice"]
        await client.ask(2)


@on_loop
async def test_a_handler_that_raises_ends_its_connection_and_no_other() -> None:
    def handle(request: Request) -> Answer:
        if request.frame.correlation_id == 13:
            raise ZeroDivisionError
        return echo(request)

    async def late(request: Request) -> Answer:
        return handle(request)

    for handler in (handle, late):
        async with running(handler) as run:
            good, bad = await run.connect(), await run.connect()
            await bad.ask(12)
            bad.send(request_bytes(13))
            assert await bad.closed()
            assert await good.ask(1, b"still here") == b"still here"
            await run.until(lambda run=run: run.closed("handler_failed") == 1)  # type: ignore[misc]


@on_loop
async def test_slow_requests_sent_ahead_leave_the_loop_its_turns() -> None:
    order: list[str] = []
    loop = asyncio.get_running_loop()

    def slow(request: Request) -> Answer:
        order.append("request")
        loop.call_soon(order.append, "other")
        until = time.perf_counter_ns() + 2 * TURN_NS
        while time.perf_counter_ns() < until:
            pass
        return echo(request)

    async with running(slow) as run:
        client = await run.connect()
        client.send(b"".join(request_bytes(number, b"") for number in range(6)))
        await run.until(lambda: order.count("request") == 6)
    # The first look at the clock is after the first request, so a turn may take two of them, never three.
    assert "request request request" not in " ".join(order)
