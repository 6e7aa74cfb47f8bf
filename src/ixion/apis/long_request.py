"""Decodes a request with very many elements in turns of the loop, then handles it.

A fetch of 100,000 partitions takes 30 to 50 ms to decode. Only other such requests wait for that: they share one lane
(`timer.lane`), so that many of them get no more of the loop than one. The decoded request counts in the memory pool
until it is released. If the client disconnects meanwhile, decoding stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from ixion.apis.call import Call, Handle, Outcome
from ixion.apis.distinct import Rule, reduce_steps
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps
from ixion.wire.answer import Later

if TYPE_CHECKING:
    from ixion.network.request import Request

ELEMENT_BYTES: Final = 200  # memory of one decoded element; 100 to 240 were measured

_finishing: set[asyncio.Task[None]] = set()  # strong references: the loop keeps only weak ones


class LongRequest:
    def __init__(self, request: Request, handle: Handle, rules: dict[str, Rule]) -> None:
        self._request = request
        self._handle = handle
        self._rules = rules

    def start(self) -> None:
        job = self._request.lane.run(self._decode(), self._decoded)
        if job.pending:
            self._request.on_gone(job.cancel)

    def _decode(self) -> Steps[Call]:
        request = self._request
        header, body, elements = yield from request.frame.decode_steps()
        request.grow(elements * ELEMENT_BYTES)
        yield
        body = yield from reduce_steps(body, self._rules)
        yield  # so that the handler does not begin in the same turn
        return Call(request, header, body)

    def _decoded(self, call: Call | None, error: Exception | None) -> None:
        request = self._request
        request.on_gone(None)
        if call is None:
            assert error is not None
            request.fail(error)
            return
        try:
            outcome = self._handle(call)
            if outcome is None or isinstance(outcome, (Later, Struct)):
                settle(call, outcome)
            else:
                finish_later(call, outcome)
        except Exception as failure:
            request.fail(failure)


def finish_later(call: Call, pending: Awaitable[Outcome]) -> None:
    task = asyncio.get_running_loop().create_task(finish(call, pending))
    _finishing.add(task)
    task.add_done_callback(_finishing.discard)


async def finish(call: Call, pending: Awaitable[Outcome]) -> None:
    try:
        settle(call, await pending)
    except asyncio.CancelledError:
        call.release()
        raise
    except Exception as failure:
        call.request.fail(failure)


def settle(call: Call, outcome: Outcome) -> None:
    if outcome is None:
        call.no_response()
    elif isinstance(outcome, Struct):
        call.respond(outcome)
