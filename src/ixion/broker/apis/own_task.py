"""Runs handlers that wait for the controller in their own asyncio task.

The controller makes one change at a time and writes to a disk. A handler that returned an awaitable would occupy one of
num.io.threads until then, and eight clients that create topics would stop all produces and fetches. So such a handler
returns `LATER`. There are at most as many tasks as connections, because a connection has one request in flight.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.broker.metadata.errors import MetadataError
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.payer import PAYER, timed

logger = logging.getLogger(__name__)


def in_own_task(handle: Callable[[Call], Awaitable[Outcome]]) -> Handle:
    """`handle` as a handler that occupies none of num.io.threads."""
    tasks: set[asyncio.Task[None]] = set()  # strong references: the loop keeps only weak ones

    async def run(call: Call) -> None:
        try:
            outcome = await handle(call)
            if isinstance(outcome, Struct):
                call.respond(outcome)
        except asyncio.CancelledError:
            call.release()
            raise
        except MetadataError as error:  # the tree is unreachable, or the session has expired and is being replaced
            logger.warning("API key %d from %s gets no response: %s", call.header.api_key, call.address, error)
            call.fail()
        except Exception:
            logger.exception("API key %d from %s failed", call.header.api_key, call.address)
            call.fail()

    def start(call: Call) -> Later:
        spend = PAYER.current
        task = asyncio.get_running_loop().create_task(run(call) if spend is None else timed(run(call), spend))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return LATER

    return start
