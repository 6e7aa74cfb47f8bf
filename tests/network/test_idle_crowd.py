"""Two thousand connections that do nothing: they cost memory of a few kilobytes each, one timer task, and no time."""

from __future__ import annotations

import socket
import tracemalloc

from tests.network.harness import on_loop, running

CROWD = 2000
BYTES_EACH = 8192  # of Python's memory; the loop's own transport is most of it


@on_loop
async def test_a_crowd_of_idle_connections_is_cheap_and_expires_together() -> None:
    async with running(max_idle_ms=1000) as run:
        witness = await run.connect()
        await witness.ask(1)
        port = run.server.port("PLAINTEXT")
        tracemalloc.start()
        try:
            crowd = []
            before, _ = tracemalloc.get_traced_memory()
            for number in range(CROWD):
                crowd.append(socket.create_connection(("127.0.0.1", port)))
                if number % 100 == 0:
                    await run.until(lambda number=number: run.count() == number + 2)  # type: ignore[misc]
            await run.until(lambda: run.timer.size == CROWD + 1)  # all registered
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (after - before) / CROWD < BYTES_EACH
        assert run.count() == CROWD + 1
        await witness.ask(2)
        run.clock.advance(1000)
        await run.until(lambda: run.closed("idle") >= CROWD)
        assert run.timer.size <= 1
        for each in crowd:
            each.close()
