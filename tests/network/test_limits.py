"""Every limit holds, and can be changed while connections are open."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import ExitStack
from itertools import pairwise

import pytest

from ixion.broker.network import LATER, Answer, BindError, Listener, Request
from ixion.broker.network.acceptor import AT_ONCE
from ixion.broker.network.read_buffer import NARROW
from tests.network.harness import PLAIN, echo, on_loop, request_bytes, running

BROKERS = Listener(name="BROKERS", port=0, inter_broker=True)
CONTROL = Listener(name="CONTROL", port=0, control_plane=True)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0.001)


@on_loop
async def test_over_the_total_accepting_waits_until_a_connection_ends() -> None:
    async with running(max_connections=2) as run:
        first, second = await run.connect(), await run.connect()
        await first.ask(1)
        await second.ask(1)
        third = await run.connect()  # the system accepts it; the server does not
        third.send(request_bytes(3))
        await turns()
        assert run.count() == 2
        first.close()
        assert await third.answer() == (3, b"")
        assert run.count() == 2


@on_loop
async def test_over_a_listeners_limit_only_that_listener_waits() -> None:
    other = Listener(name="OTHER", port=0)
    async with running(listeners=(PLAIN, other), max_connections_per_listener={"PLAINTEXT": 1}) as run:
        first = await run.connect()
        await first.ask(1)
        second = await run.connect()
        second.send(request_bytes(2))
        await (await run.connect("OTHER")).ask(1)
        await turns()
        assert (run.count(), run.count("OTHER")) == (1, 1)
        run.change_limits(max_connections_per_listener={"PLAINTEXT": 2})
        assert await second.answer() == (2, b"")


@on_loop
async def test_over_the_limit_of_its_address_a_newcomer_is_closed() -> None:
    async with running(max_connections_per_ip=2) as run:
        clients = [await run.connect() for _ in range(2)]
        for client in clients:
            await client.ask(1)
        assert await (await run.connect()).closed()
        assert run.closed("address_limit") == 1
        for client in clients:
            await client.ask(2)


@on_loop
async def test_an_address_may_have_a_limit_of_its_own() -> None:
    async with running(max_connections_per_ip=0, max_connections_per_ip_overrides={"127.0.0.1": 1}) as run:
        await (await run.connect()).ask(1)
        assert await (await run.connect(local_addr=("127.0.0.2", 0))).closed()
        assert await (await run.connect()).closed()
        run.change_limits(max_connections_per_ip_overrides={"127.0.0.1": 1, "127.0.0.2": 1})
        await (await run.connect(local_addr=("127.0.0.2", 0))).ask(1)


@on_loop
async def test_brokers_come_in_over_the_total_and_a_client_goes() -> None:
    async with running(listeners=(PLAIN, BROKERS), max_connections=2) as run:
        clients = [await run.connect() for _ in range(2)]
        for number, client in enumerate(clients):
            await client.ask(number)
            run.clock.advance(10)
        await clients[0].ask(9)  # so the second one has been quiet longer
        broker = await run.connect("BROKERS")
        await broker.ask(1)
        assert await clients[1].closed()
        await clients[0].ask(10)
        assert (run.count(), run.count("BROKERS"), run.closed("excess")) == (1, 1, 1)


@on_loop
async def test_a_lone_listener_is_not_protected() -> None:
    async with running(listeners=(Listener(name="PLAINTEXT", port=0, inter_broker=True),), max_connections=1) as run:
        await (await run.connect()).ask(1)
        second = await run.connect()
        second.send(request_bytes(1))
        await turns()
        assert run.count() == 1


@on_loop
async def test_lowering_a_limit_closes_the_longest_quiet_and_spares_the_busy() -> None:
    held: list[Request] = []

    def handle(request: Request) -> Answer:
        if request.frame.correlation_id == 99:
            held.append(request)
            return LATER
        return echo(request)

    async with running(handle) as run:
        clients = [await run.connect() for _ in range(6)]
        clients[0].send(request_bytes(99))  # the oldest, but it waits for an answer
        await run.until(lambda: bool(held))
        for number in (3, 1, 2, 5, 4):
            run.clock.advance(10)
            await clients[number].ask(1)
        run.change_limits(max_connections=3)
        for number in (3, 1, 2):
            assert await clients[number].closed()
        await run.until(lambda: run.count() == 3)
        run.clock.advance(10)
        held[0].respond([struct.pack(">ii", 4, 99)])
        assert await clients[0].answer() == (99, b"")
        run.change_limits(max_connections_per_listener={"PLAINTEXT": 2})
        assert await clients[5].closed()
        run.change_limits(max_connections_per_ip=1)
        assert await clients[4].closed()
        await clients[0].ask(2)
        assert run.closed("excess") == 5


@on_loop
async def test_idle_connections_expire_oldest_first() -> None:
    async with running(max_idle_ms=1000) as run:
        clients = [await run.connect() for _ in range(3)]
        for client in clients:
            await client.ask(1)
            run.clock.advance(100)
        run.clock.advance(600)
        await clients[0].ask(2)  # it was the oldest; now it is the youngest
        run.clock.advance(200)
        assert await clients[1].closed()
        assert run.count() == 2
        run.clock.advance(100)
        assert await clients[2].closed()
        await clients[0].ask(3)
        assert run.closed("idle") == 2
        run.change_limits(max_idle_ms=50)
        run.clock.advance(50)
        assert await clients[0].closed()


@on_loop
async def test_a_client_that_waits_for_an_answer_is_not_idle() -> None:
    held: list[Request] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        return LATER

    async with running(handle, max_idle_ms=1000) as run:
        client = await run.connect()
        client.send(request_bytes(1))
        await run.until(lambda: bool(held))
        for _ in range(5):
            run.clock.advance(900)
            await turns(3)
        assert run.timer.size == 1  # its deadline waits on; it does not spin
        held[0].respond([struct.pack(">ii", 4, 1)])
        assert await client.answer() == (1, b"")


@on_loop
async def test_a_full_queue_stops_reading_and_goes_on() -> None:
    gate = asyncio.Event()

    async def handle(request: Request) -> Answer:
        await gate.wait()
        return echo(request)

    async with running(handle, handlers=2, queued_max_requests=3) as run:
        clients = [await run.connect() for _ in range(10)]
        for client in clients:
            client.send(request_bytes(1, bytes(1000)))
        await run.until(lambda: run.server.snapshot().channels[0].waiting == 5)
        channel = run.server.snapshot().channels[0]
        assert (channel.busy, channel.queued, channel.waiting) == (2, 3, 5)
        assert run.server.snapshot().requests == 5
        gate.set()
        for client in clients:
            assert await client.answer() == (1, bytes(1000))


@on_loop
async def test_a_sender_that_is_kept_waiting_is_not_overdue() -> None:
    gate = asyncio.Event()

    async def handle(request: Request) -> Answer:
        await gate.wait()
        return echo(request)

    async with running(handle, handlers=1, queued_max_requests=1, stall_ms=1000) as run:
        first, second, third = [await run.connect() for _ in range(3)]
        frame = request_bytes(3, bytes(1000))
        third.send(frame[:100])
        await run.until(lambda: run.server.snapshot().pool_used == 96)
        first.send(request_bytes(1))
        second.send(request_bytes(2))
        await run.until(lambda: run.server.snapshot().channels[0].queued == 1)
        third.send(frame[100:])
        await run.until(lambda: run.server.snapshot().channels[0].waiting == 1)
        run.clock.advance(5000)
        await turns()
        gate.set()
        assert await third.answer() == (3, bytes(1000))


@on_loop
async def test_what_a_muted_client_sends_ahead_stays_with_the_client() -> None:
    held: list[Request] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        return LATER if len(held) == 1 else None

    async with running(handle) as run:
        client = await run.connect()
        client.send(request_bytes(1) * 1_000_000)  # 16 MB
        await run.until(lambda: bool(held))
        await turns()
        assert run.server.snapshot().bytes_in < 1_000_000
        assert len(held) == 1
        client.close()
        held[0].no_response()


@on_loop
async def test_a_spent_memory_pool_stops_reading_until_memory_comes_back() -> None:
    held: list[Request] = []

    def handle(request: Request) -> Answer:
        held.append(request)
        return LATER

    async with running(handle, queued_max_request_bytes=100_000) as run:
        clients = [await run.connect() for _ in range(4)]
        for client in clients:
            client.send(request_bytes(1, bytes(80_000)))
        await run.until(lambda: run.server.snapshot().pool_waiting == 1)
        await run.until(lambda: len(held) == 3)  # the second overdraws it, the third has the pass
        assert run.server.snapshot().pool_used == 2 * 80_016 + 80_012 + NARROW - 4
        held[1].release()
        assert run.server.snapshot().pool_waiting == 1
        run.change_limits(queued_max_request_bytes=-1)
        await run.until(lambda: len(held) == 4)
        for request in held:
            request.respond([struct.pack(">ii", 4, 1)])
        for client in clients:
            assert await client.answer() == (1, b"")


@on_loop
async def test_the_largest_request_can_be_changed() -> None:
    async with running(request_max_bytes=1000) as run:
        client, other = await run.connect(), await run.connect()
        assert await client.ask(1, bytes(900)) == bytes(900)
        await other.ask(1)
        client.send(request_bytes(2, bytes(1000)))
        assert await client.closed()
        assert run.closed("oversize") == 1
        run.change_limits(request_max_bytes=2_000_000)
        assert await other.ask(2, bytes(1_000_000)) == bytes(1_000_000)


@on_loop
async def test_the_control_plane_does_not_queue_behind_the_data_plane() -> None:
    gate = asyncio.Event()

    async def handle(request: Request) -> Answer:
        await gate.wait()
        return echo(request)

    async with running(
        handle, listeners=(PLAIN, CONTROL), control_handle=echo, handlers=1, queued_max_requests=1
    ) as run:
        clients = [await run.connect() for _ in range(3)]
        for client in clients:
            client.send(request_bytes(1))
        await run.until(lambda: run.server.snapshot().channels[0].waiting == 1)
        assert await (await run.connect("CONTROL")).ask(5, b"now") == b"now"
        gate.set()


@on_loop
async def test_connections_wait_for_the_processors_and_the_acceptor_at_the_last_one() -> None:
    async with running(start=False, processors=2) as run:
        clients = [await run.connect() for _ in range(50)]
        for number, client in enumerate(clients):
            client.send(request_bytes(number))
        await run.until(lambda: run.count() == 41)  # 20 in each queue, one in the acceptor's hand
        await turns()
        assert run.count() == 41
        assert run.server.snapshot().requests == 0
        run.server.start_processors()
        for number, client in enumerate(clients):
            assert await client.answer() == (number, b"")
        counts = [len(processor.connections) for processor in run.server.acceptors[0].processors]
        assert sum(counts) == 50
        assert min(counts) >= 20


@on_loop
async def test_listeners_tell_their_ports_and_a_taken_port_is_named() -> None:
    named = Listener(name="NAMED", port=0)
    async with running(listeners=(CONTROL, PLAIN, named)) as run:
        ends = [(end.name, end.host, end.port) for end in run.server.endpoints]
        port = run.server.port("PLAINTEXT")
        assert ends[:2] == [("PLAINTEXT", "127.0.0.1", port), ("NAMED", "127.0.0.1", run.server.port("NAMED"))]
        assert ends[2][0] == "CONTROL"
        taken = Listener(name="SECOND", port=port)
        with pytest.raises(BindError, match=f"listener SECOND cannot listen on 127.0.0.1:{port}: .*in use"):
            async with running(listeners=(PLAIN, taken)):
                pass


@on_loop
async def test_a_crowd_of_tls_clients_is_accepted_in_turns() -> None:
    """Handshakes do not count as connections that wait to be registered, so nothing else would end a turn."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listener = Listener(name="SSL", port=0, tls=lambda: context)
    count = AT_ONCE * 5
    async with running(listeners=(listener,)) as run:
        with ExitStack() as stack:
            for _ in range(count):  # they wait in the backlog of the socket: the loop has no turn meanwhile
                stack.enter_context(socket.create_connection(("127.0.0.1", run.server.port("SSL")), timeout=20))
            accepted = [0]
            while accepted[-1] < count:
                await asyncio.sleep(0)
                accepted.append(run.server.snapshot().accepted)
        assert max(after - before for before, after in pairwise(accepted)) <= AT_ONCE
        await run.until(lambda: run.closed("handshake") == count)
