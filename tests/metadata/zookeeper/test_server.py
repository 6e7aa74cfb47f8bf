"""The sockets of the tree server: what it does about strangers, silence, and its own standing still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from ixion.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.metadata.zookeeper import packets, server
from ixion.metadata.zookeeper.server import HOST, TreeServer, serve_tree

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
