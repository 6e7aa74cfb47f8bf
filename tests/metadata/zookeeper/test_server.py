"""The sockets of the tree server: what it does about strangers, silence, and its own standing still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.zookeeper import packets, server
from ixion.broker.metadata.zookeeper.jute import JuteReader, put_bool, put_int, put_string
from ixion.broker.metadata.zookeeper.server import HOST, TreeServer, serve_tree

TIMEOUT_MS = 1_000
HELLO = packets.connect_request(0, TIMEOUT_MS, 0, bytes(16))


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


async def started() -> TreeServer:
    return await serve_tree(EmbeddedStore(IN_MEMORY), 0)


async def greet(tree: TreeServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, tree.port)
    writer.write(HELLO)
    await reader.readexactly(4)
    return reader, writer


async def ended(reader: asyncio.StreamReader) -> None:
    """Returns when the server has closed the connection."""
    try:
        while await reader.read(1 << 16):
            pass
    except ConnectionError:
        pass


def test_a_stranger_that_does_not_greet_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GREETING_S", 0.05)

    async def test() -> None:
        tree = await started()
        _, client = await greet(tree)
        reader, silent = await asyncio.open_connection(HOST, tree.port)
        await ended(reader)
        assert not client.is_closing()
        again, _ = await greet(tree)
        assert await again.read(1)
        for writer in (client, silent, _):
            writer.close()
        await tree.close()

    run(test())


def test_one_connection_more_than_there_may_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)

    async def test() -> None:
        tree = await started()
        _, first = await greet(tree)
        reader, second = await asyncio.open_connection(HOST, tree.port)
        second.write(HELLO)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(4)  # no welcome
        first.close()
        second.close()
        await tree.close()

    run(test())


@pytest.mark.parametrize("late", [False, True])
def test_silence_ends_a_session_unless_the_server_stood_still(late: bool) -> None:
    async def test() -> None:
        tree = await started()
        reader, writer = await greet(tree)
        tree._timer.cancel()
        loop_stands_still_s = TIMEOUT_MS / 1000 + 0.1
        time.sleep(loop_stands_still_s)
        tree._ticked = time.monotonic() - (loop_stands_still_s if late else 0.0)
        tree._tick()
        closing = asyncio.ensure_future(ended(reader))
        if late:
            await asyncio.sleep(0.05)
            assert not closing.done()
            writer.close()
        await closing
        writer.close()
        await tree.close()

    run(test())


def get_request(xid: int, path: str) -> bytes:
    return packets.frame(put_int(xid) + put_int(packets.Op.GET) + put_string(path) + put_bool(False))


def test_a_client_that_asks_and_does_not_read_waits_with_its_questions() -> None:
    """More answers than the server would keep: none is lost, and few are made before they are read."""
    data, asked = bytes(1_000_000), 100

    async def test() -> None:
        tree = await started()
        tree._keeper.store.open_session(60_000).create("/large", data)
        reader, writer = await greet(tree)
        await reader.readexactly(37)  # the welcome
        writer.write(b"".join(get_request(xid, "/large") for xid in range(1, asked + 1)))
        (link,) = tree._links
        while not link._connection._paused:  # type: ignore[union-attr]
            await asyncio.sleep(0.001)
        assert link._transport is not None
        assert link._transport.get_write_buffer_size() < 4 * len(data)
        for xid in range(1, asked + 1):
            size = int.from_bytes(await reader.readexactly(4), "big")
            answer = JuteReader(await reader.readexactly(size))
            assert (answer.read_int(), answer.read_long() > 0, answer.read_int()) == (xid, True, 0)
        writer.close()
        await tree.close()

    run(test())


def test_events_for_a_client_that_does_not_read_end_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_UNREAD", 10_000)
    path = "/" + "x" * 2_000

    async def test() -> None:
        tree = await started()
        changing = tree._keeper.store.open_session(60_000)
        changing.create(path, b"")
        reader, writer = await greet(tree)
        await reader.readexactly(37)
        writer.write(packets.frame(put_int(1) + put_int(packets.Op.ADD_WATCH) + put_string(path) + put_int(0)))
        await reader.readexactly(4)
        assert isinstance(writer.transport, asyncio.ReadTransport)
        writer.transport.pause_reading()
        while tree._links:
            changing.set(path, b"")
            await asyncio.sleep(0)
        assert tree._keeper.watches == 0
        writer.close()
        await tree.close()

    run(test())
