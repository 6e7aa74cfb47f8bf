"""Connections come no faster than allowed, a second's worth of them at once."""

from __future__ import annotations

from ixion.broker.network import Listener
from tests.network.harness import PLAIN, Running, on_loop, running

BROKERS = Listener(name="BROKERS", port=0, inter_broker=True)


async def accepted_after(run: Running, ms: int, expected: int) -> None:
    """So many have been let in when the clock has moved on, and no more."""
    run.clock.advance(ms)
    await run.until(lambda: run.server.snapshot().accepted >= expected)
    for client in run.clients[:expected]:  # a round trip each: who could have been let in as well, would have been
        await client.ask(1)
    assert run.server.snapshot().accepted == expected


@on_loop
async def test_a_seconds_worth_at_once_then_one_by_one() -> None:
    async with running(max_connection_creation_rate=4) as run:
        for _ in range(9):
            await run.connect()  # the system accepts them
        await accepted_after(run, 0, 5)
        await accepted_after(run, 249, 5)
        await accepted_after(run, 1, 6)
        await accepted_after(run, 500, 8)
        await accepted_after(run, 250, 9)
        await accepted_after(run, 60_000, 9)
        for _ in range(9):
            await run.connect()
        await accepted_after(run, 0, 9 + 5)  # a quiet minute is worth no more than a quiet second


@on_loop
async def test_a_new_rate_holds_at_once() -> None:
    async with running(max_connection_creation_rate=0) as run:
        await run.connect()
        await accepted_after(run, 100_000, 0)
        run.change_limits(max_connection_creation_rate=1)
        for _ in range(4):
            await run.connect()
        await accepted_after(run, 0, 2)
        run.change_limits(max_connection_creation_rate=2**31 - 1)
        await accepted_after(run, 0, 5)


@on_loop
async def test_brokers_do_not_wait() -> None:
    async with running(listeners=(PLAIN, BROKERS), max_connection_creation_rate=0) as run:
        waiting = await run.connect()
        await (await run.connect("BROKERS")).ask(1)
        assert (run.count(), run.count("BROKERS")) == (0, 1)
        run.clients.remove(waiting)
        waiting.close()
