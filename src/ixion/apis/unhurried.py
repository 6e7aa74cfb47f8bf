"""Handlers that wait for the controller, which does one thing after the other and writes to a disk.

An awaitable would keep one of num.io.threads places for as long as that takes: eight clients that create topics at the
same time would stop everybody else's records. So such a handler answers later, from a task of its own. There can be as
many of them as there are connections, because each connection has one request under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ixion.apis.call import Call, Handle, Outcome
from ixion.protocol.notation import Struct
from ixion.wire.answer import LATER, Later

logger = logging.getLogger(__name__)


def unhurried(handle: Callable[[Call], Awaitable[Outcome]]) -> Handle:
    """`handle` as a handler that keeps nobody's place."""
    tasks: set[asyncio.Task[None]] = set()  # the loop itself holds them weakly only

    async def run(call: Call) -> None:
        try:
            outcome = await handle(call)
            if isinstance(outcome, Struct):
                call.respond(outcome)
        except asyncio.CancelledError:
            call.release()
            raise
        except Exception:
            logger.exception("API key %d from %s failed", call.header.api_key, call.address)
            call.fail()

    def start(call: Call) -> Later:
        task = asyncio.get_running_loop().create_task(run(call))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return LATER

    return start
