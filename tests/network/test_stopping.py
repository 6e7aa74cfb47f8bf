"""A server that stops owns every socket: also that of a client that connects in the same turn of the loop."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import Callable

import pytest

from ixion.broker.network import SocketServer
from ixion.timer import LoopTimer, ManualClock
from tests.network.harness import PLAIN, echo, loops

ROUNDS = 40


@pytest.mark.parametrize("new_loop", loops())
@pytest.mark.parametrize("drain_ms", [0, 1_000])
def test_a_connection_that_comes_with_the_stop(
    new_loop: Callable[[], asyncio.AbstractEventLoop], drain_ms: int
) -> None:
    async def work(turns: int) -> None:
        timer = LoopTimer("test", clock=ManualClock())
        server = SocketServer([PLAIN], echo, timer=timer)
        server.start_acceptors()
        server.start_processors()
        await asyncio.sleep(0.001)  # the acceptor waits for a connection
        with socket.create_connection(("127.0.0.1", server.port(PLAIN.name))):
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.stop(drain_ms)
        timer.shutdown()

    gc.collect()
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        for turn in range(ROUNDS):
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(asyncio.wait_for(work(turn % 8), 20))
        gc.collect()
    assert [str(each.message) for each in left if issubclass(each.category, ResourceWarning)] == []
