"""Begins a handler: at once, in turns of the loop, or in a task of its own. What it returns decides.

- The body of the response, `LATER` or None: it has done its work, or an operation responds later.
- A generator (`Steps`), for a request with a long list: it yields after each element and returns one of these. Short
  work is done at once. Work that takes longer than a turn (`timer.turns`) continues in the lane of long requests, and
  stops if the client disconnects.
- A coroutine, for work that waits for the controller, which makes one change at a time and writes to a disk. There are
  at most as many tasks as connections, because a connection has one request in flight.

None of them occupies one of num.io.threads while it waits: eight clients that create topics would stop all produces and
fetches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from ixion.broker.apis.call import Begin, Call, Handle, Outcome
from ixion.broker.metadata.errors import MetadataError
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.payer import PAYER, timed
from ixion.timer.turns import Steps, run_turn

logger = logging.getLogger(__name__)

_tasks: Final[set[asyncio.Task[None]]] = set()  # strong references: the loop keeps only weak ones


def begun(handle: Handle) -> Begin:
    def begin(call: Call) -> Outcome:
        work = handle(call)
        if work is None or isinstance(work, (Struct, Later)):
            return work
        if isinstance(work, Coroutine):
            _start(call, work)
            return LATER
        result = run_turn(work)
        if result is not None:
            return result[0]
        _go_on(call, work)
        return LATER

    return begin


def respond_in_turns(call: Call, steps: Steps[Struct]) -> None:
    """Respond with the result of `steps`, at once if that is short work."""
    result = run_turn(steps)
    if result is not None:
        call.respond(result[0])
    else:
        _go_on(call, steps)


def _go_on(call: Call, steps: Steps[Outcome] | Steps[Struct]) -> None:
    def done(answer: Outcome, error: Exception | None) -> None:
        if isinstance(answer, Struct):
            call.respond(answer)
        elif error is not None:
            call.request.fail(error)

    job = call.request.lane.run(steps, done)
    if job.pending:
        call.on_gone(job.cancel)


def _start(call: Call, work: Coroutine[Any, Any, Outcome]) -> None:
    spend = PAYER.current
    run = _in_own_task(call, work)
    task = asyncio.get_running_loop().create_task(run if spend is None else timed(run, spend))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _in_own_task(call: Call, work: Coroutine[Any, Any, Outcome]) -> None:
    try:
        outcome = await work
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
