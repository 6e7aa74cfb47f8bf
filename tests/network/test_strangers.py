"""Connections that do not speak Kafka's protocol, or too slowly, are closed; the others are served."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import tracemalloc
from unittest.mock import patch

import pytest

from ixion.broker.network import Answer, Request
from ixion.broker.network.processor import AcceptedConnection
from ixion.language.protocol.flaws import DecodeError
from tests.network.harness import echo, on_loop, request_bytes, running
from tests.network.test_limits import turns

MIB = 1024 * 1024


@on_loop
async def test_other_protocols_and_garbage_are_closed_and_counted() -> None:
    async with running() as run:
        witness = await run.connect()
        await witness.ask(1)
        strangers = {
            "http": b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n",
            "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
            "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
            "negative_size": struct.pack(">i", -1),
            "empty_frame": struct.pack(">i", 0),
            "oversize": struct.pack(">i", 100 * MIB + 1),
            "garbage": struct.pack(">i", 12) + b"\x7f" * 12,
        }
        for reason, stream in strangers.items():
            client = await run.connect()
            client.send(stream)
            assert await client.closed()
            assert run.closed(reason) == 1
        await witness.ask(2)
        assert run.server.snapshot().pool_used == 0


def test_a_stranger_is_logged_once_per_address(caplog: pytest.LogCaptureFixture) -> None:
    async def visits() -> None:
        async with running() as run:
            for host in ("127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.1"):
                client = await run.connect(local_addr=(host, 0))
                client.send(b"GET / HTTP/1.1\r\n")
                assert await client.closed()

    with caplog.at_level(logging.WARNING, "ixion.broker.network"):
        asyncio.run(visits())
    assert [record.getMessage()[:16] for record in caplog.records] == ["closed 127.0.0.1", "closed 127.0.0.2"]
    assert "an HTTP message, not Kafka" in caplog.text


@on_loop
async def test_a_request_that_the_handler_cannot_read_ends_its_connection() -> None:
    def handle(request: Request) -> Answer:
        raise DecodeError("nonsense", 0)

    async with running(handle) as run:
        client = await run.connect()
        client.send(request_bytes(1))
        assert await client.closed()
        assert run.closed("bad_request") == 1


@on_loop
async def test_half_a_request_and_then_silence_is_closed_in_time() -> None:
    async with running(stall_ms=1000, slowest_bytes_per_second=10_000) as run:
        witness, loris = await run.connect(), await run.connect()
        await witness.ask(1)
        loris.send(request_bytes(1, bytes(20_000))[:5000])
        await run.until(lambda: run.server.snapshot().pool_used == 4996)
        await turns()
        run.clock.advance(2000)
        loris.send(bytes(10))  # trickling does not help
        await turns()
        assert run.count() == 2
        run.clock.advance(1002)
        assert await loris.closed()
        assert run.closed("slow_sender") == 1
        assert run.server.snapshot().pool_used == 0
        await witness.ask(2)


@on_loop
async def test_100_mib_announced_by_a_known_client_takes_no_memory_until_it_comes() -> None:
    async with running() as run:
        client = await run.connect()
        await client.ask(1)
        tracemalloc.start()
        try:
            client.send(struct.pack(">i", 100 * MIB))
            await run.until(lambda: run.server.snapshot().bytes_in > 16)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < MIB
        assert run.server.snapshot().pool_used == 0
        client.close()
        await run.until(lambda: run.server.snapshot().pool_used == 0)


def big(request: Request) -> Answer:
    """As many MiB as the correlation id says."""
    size = request.frame.correlation_id * MIB
    return [struct.pack(">ii", size + 4, request.frame.correlation_id), bytes(size)] if size else echo(request)


@on_loop
async def test_a_reader_that_does_not_take_its_answer_is_closed_in_time() -> None:
    async with running(big, stall_ms=1000, slowest_bytes_per_second=100 * MIB) as run:
        witness = await run.connect()
        slow = await run.connect(limit=1024)
        slow.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send(request_bytes(32) + request_bytes(32))
        await run.until(lambda: run.server.snapshot().slow_readers == 1)
        await turns()
        snapshot = run.server.snapshot()
        assert snapshot.requests == 1  # it stays muted: one unsent answer, never two
        assert snapshot.unsent_bytes == 32 * MIB + 8  # the whole of it, though some has left
        await witness.ask(0, b"undisturbed")
        run.clock.advance(1400)
        await run.until(lambda: run.closed("slow_reader") == 1)
        assert run.server.snapshot().unsent_bytes == 0


@on_loop
async def test_a_reader_that_takes_its_time_gets_everything() -> None:
    async with running(big) as run:
        slow = await run.connect(limit=1024)
        slow.send(request_bytes(16) + request_bytes(0, b"after"))
        await run.until(lambda: run.server.snapshot().slow_readers == 1)
        run.clock.advance(5000)
        number, body = await slow.answer()
        assert (number, len(body)) == (16, 16 * MIB)
        assert await slow.answer() == (0, b"after")
        assert run.server.snapshot().slow_readers == 0


@on_loop
async def test_over_the_bound_of_all_unsent_answers_the_longest_waiting_reader_goes() -> None:
    async with running(big, unsent_max_bytes=40 * MIB) as run:
        readers = []
        for number in range(2):
            reader = await run.connect(limit=1024)
            readers.append(reader)
            reader.send(request_bytes(32))
            await run.until(lambda number=number: run.server.snapshot().slow_readers == number + 1)  # type: ignore[misc]
            run.clock.advance(10)
            await turns(2)
        assert run.server.snapshot().unsent_bytes > 40 * MIB  # each has a second
        run.clock.advance(1000)
        await run.until(lambda: run.closed("slow_reader") == 1)
        assert run.server.snapshot().slow_readers == 1
        assert len((await readers[1].answer())[1]) == 32 * MIB


@on_loop
async def test_stopping_answers_what_is_in_flight_and_reads_nothing_more() -> None:
    gate = asyncio.Event()

    async def handle(request: Request) -> Answer:
        await gate.wait()
        return echo(request)

    async with running(handle) as run:
        idle, busy = await run.connect(), await run.connect()
        busy.send(request_bytes(1) + request_bytes(2))
        await run.until(lambda: run.server.snapshot().channels[0].busy == 1 and run.count() == 2)
        stopping = asyncio.ensure_future(run.server.stop(drain_ms=1000))
        assert await idle.closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", run_port(busy))
        gate.set()
        assert await busy.answer() == (1, b"")
        assert await busy.closed()
        await stopping
        assert run.closed("shutdown") == 2
        assert run.server.snapshot().requests == 1


@on_loop
async def test_stopping_warns_only_of_connections_that_are_left() -> None:
    """The time to stop may be over while the last connection is closing."""
    with patch("ixion.broker.network.socket_server.log") as log:
        async with running() as run:
            run.server._cut_off()
    assert log.mock_calls == []


@on_loop
async def test_stopping_takes_those_along_that_have_only_just_come() -> None:
    for pause in range(12):
        async with running(processors=1) as run:
            port = run.server.port("PLAINTEXT")
            crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
            for _ in range(pause):
                await asyncio.sleep(0)
            await run.server.stop(drain_ms=1000)  # no clock is advanced: it must not need its time
            assert run.count() == 0
            for each in crowd:
                each.close()


@on_loop
async def test_a_connection_that_is_registered_after_the_stop_is_closed() -> None:
    async with running() as run:
        processor = run.server.acceptors[0].processors[0]
        shared = processor.plane.shared
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        assert shared.quotas.take("PLAINTEXT", "127.0.0.9")
        shared.counters.accepted += 1
        assert processor.offer(
            AcceptedConnection(socket=ours, listener=run.server.acceptors[0].listener, address="127.0.0.9")
        )
        processor.stop()
        await run.until(lambda: run.count() == 0)
        assert run.closed("shutdown") == 1
        theirs.close()


@on_loop
async def test_stopping_before_the_processors_were_started_closes_all_that_wait() -> None:
    async with running(start=False, processors=1) as run:
        clients = [await run.connect() for _ in range(25)]
        await run.until(lambda: run.count() == 21)
        await run.server.stop(drain_ms=1000)
        for client in clients:
            assert await client.closed()


@on_loop
async def test_stopping_ends_when_its_time_is_over() -> None:
    async def handle(request: Request) -> Answer:
        await asyncio.Event().wait()
        return None

    async with running(handle) as run:
        client = await run.connect()
        client.send(request_bytes(1))
        await run.until(lambda: run.server.snapshot().channels[0].busy == 1)
        stopping = asyncio.ensure_future(run.server.stop(drain_ms=1000))
        await turns()
        assert not stopping.done()
        run.clock.advance(1000)
        await stopping
        assert await client.closed()


def run_port(client: object) -> int:
    port = client.writer.get_extra_info("peername")[1]  # type: ignore[attr-defined]
    assert isinstance(port, int)
    return port


@on_loop
async def test_far_over_that_bound_slow_readers_are_closed_at_once() -> None:
    async with running(big, unsent_max_bytes=40 * MIB) as run:
        for number in range(6):
            slow = await run.connect(limit=1024)
            slow.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.send(request_bytes(32))
            await run.until(
                lambda number=number: run.server.snapshot().slow_readers + run.closed("slow_reader") == number + 1  # type: ignore[misc]
            )
        assert run.closed("slow_reader") == 4
        assert run.server.snapshot().unsent_bytes == 2 * (32 * MIB + 8)
