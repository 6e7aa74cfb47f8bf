"""Handlers of requests with long lists, which give the loop its turns.

Such a handler is a generator that yields after each element and returns the response. Short work is done at once. Work
that takes longer than a turn of `ixion.timer.turns` continues in the lane of long requests and responds later, so it
occupies none of num.io.threads. If the client disconnects meanwhile, the work stops.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps, run_turn


def sliced(handle: Callable[[Call], Steps[Struct | Later]]) -> Handle:
    """`handle` as a handler that works in turns. If it returns LATER, it calls `call.respond` itself."""

    def start(call: Call) -> Outcome:
        steps = handle(call)
        result = run_turn(steps)
        if result is not None:
            return result[0]
        go_on(call, steps)
        return LATER

    return start


def respond_in_turns(call: Call, steps: Steps[Struct]) -> None:
    """Respond with the result of `steps`, at once if that is short work."""
    result = run_turn(steps)
    if result is not None:
        call.respond(result[0])
    else:
        go_on(call, steps)


def go_on(call: Call, steps: Steps[Struct | Later] | Steps[Struct]) -> None:
    def done(answer: Struct | Later | None, error: Exception | None) -> None:
        if isinstance(answer, Struct):
            call.respond(answer)
        elif error is not None:
            call.request.fail(error)

    job = call.request.lane.run(steps, done)
    if job.pending:
        call.on_gone(job.cancel)
