"""What is announced, half sent, or sent ahead: it counts as far as it is here, and keeps nobody out."""

from __future__ import annotations

import struct

from ixion.broker.network import LATER, Answer, Request
from ixion.broker.network.read_buffer import AHEAD, NARROW, WIDE
from tests.network.harness import Client, Running, on_loop, request_bytes, running
from tests.network.test_limits import turns

KIB = 1024
HALF_MIB = 512 * KIB


async def crowd(run: Running, count: int, data: bytes) -> list[Client]:
    """Connections that send the same bytes and no more; all of them have been read."""
    before = run.server.snapshot().bytes_in
    clients = []
    for _ in range(count):
        client = await run.connect()
        client.send(data)
        clients.append(client)
    await run.until(lambda: run.server.snapshot().bytes_in >= before + count * len(data))
    return clients


@on_loop
async def test_513_connections_that_announce_half_a_mebibyte_each_keep_no_client_out() -> None:
    async with running(queued_max_request_bytes=256 * KIB * KIB) as run:
        await crowd(run, 513, struct.pack(">i", HALF_MIB))
        assert run.server.snapshot().pool_used == 0
        client = await run.connect()
        assert await client.ask(1, bytes(HALF_MIB)) == bytes(HALF_MIB)
        assert run.server.snapshot().pool_waiting == 0


@on_loop
async def test_half_requests_that_fall_silent_go_when_others_wait_for_memory() -> None:
    """The same at a 64th of the size, with all but the last byte sent: the pool is really full."""
    async with running(queued_max_request_bytes=4 * KIB * KIB, stall_ms=3_600_000) as run:
        frame = request_bytes(1, bytes(7 * KIB))
        for _ in range(700):
            (await run.connect()).send(frame[:-1])
        await run.until(lambda: run.server.snapshot().pool_used > 4 * KIB * KIB)
        honest = await run.connect()
        honest.send(request_bytes(2, bytes(100 * KIB)))
        # One of the silent ones has the pass, so this one waits.
        await run.until(lambda: run.server.snapshot().pool_waiting > 0)
        for _ in range(13):
            run.clock.advance(100)
            await turns(2)
        assert await honest.answer() == (2, bytes(100 * KIB))
        assert run.closed("slow_sender") > 0
        assert run.server.snapshot().pool_used <= 4 * KIB * KIB + WIDE + 700 * NARROW


@on_loop
async def test_no_slow_sender_is_closed_while_there_is_memory() -> None:
    async with running() as run:
        slow = await run.connect()
        frame = request_bytes(1, bytes(7 * KIB))
        slow.send(frame[:-1])
        await run.until(lambda: run.server.snapshot().pool_used > 7 * KIB)
        run.clock.advance(20_000)
        await turns()
        slow.send(frame[-1:])
        assert await slow.answer() == (1, bytes(7 * KIB))


@on_loop
async def test_many_large_frames_at_once_get_through_one_after_the_other() -> None:
    most = 0

    def handle(request: Request) -> Answer:
        nonlocal most
        most = max(most, run.server.snapshot().pool_used)
        return [struct.pack(">ii", 4, request.frame.correlation_id)]

    async with running(handle, queued_max_request_bytes=4 * KIB * KIB) as run:
        frame = request_bytes(7, bytes(2 * KIB * KIB))
        clients = [await run.connect() for _ in range(20)]
        for client in clients:
            client.send(frame[: len(frame) // 2])
        await turns()
        for client in clients:
            client.send(frame[len(frame) // 2 :])
        for client in clients:
            assert await client.answer() == (7, b"")
        assert most <= 4 * KIB * KIB + len(frame) + WIDE + 20 * NARROW


@on_loop
async def test_what_is_sent_ahead_counts_and_is_bounded() -> None:
    held: list[Request] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        return LATER

    async with running(handle) as run:
        clients = []
        for number in range(20):
            client = await run.connect()
            clients.append(client)
            client.send(request_bytes(1))
            await run.until(lambda number=number: len(held) == number + 1)  # type: ignore[misc]
            held[-1].release()
        assert run.server.snapshot().pool_used == 0
        for client in clients:
            client.send(bytes(KIB * KIB))
        await turns(50)
        used = run.server.snapshot().pool_used
        assert 20 * AHEAD <= used <= 20 * (AHEAD + 2 * NARROW)
        for client in clients:
            client.close()
        await run.until(lambda: run.server.snapshot().bytes_in > 0 and run.count() == 20)
        for request in held:
            request.no_response()


@on_loop
async def test_a_first_request_of_megabytes_is_taken() -> None:
    """As Kafka does: a client need not begin with a small one."""
    async with running() as run:
        client = await run.connect()
        assert await client.ask(1, bytes(3 * KIB * KIB)) == bytes(3 * KIB * KIB)
