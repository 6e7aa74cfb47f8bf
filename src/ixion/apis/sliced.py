"""Handlers of requests with long lists: the loop has its turn while one of them is at work.

Such a handler is a generator that yields after each element and returns the answer. Short work is done, and answered,
when the handler returns. What takes longer than a turn of `ixion.timer.turns` goes on in the next turns of the loop and
answers later, so it keeps none of the num.io.threads places.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ixion.apis.call import Call, Handle, Outcome
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps, run_turn, start_in_turns
from ixion.wire.answer import LATER

logger = logging.getLogger(__name__)


def sliced(call_soon: Callable[..., object], handle: Callable[[Call], Steps[Struct]]) -> Handle:
    """`handle` as a handler whose work is done in turns."""

    def start(call: Call) -> Outcome:
        steps = handle(call)
        result = run_turn(steps)
        if result is not None:
            return result[0]

        def done(answer: Struct | None, error: Exception | None) -> None:
            if answer is not None:
                call.respond(answer)
            else:
                logger.error("API key %d from %s failed", call.header.api_key, call.address, exc_info=error)
                call.fail()

        call_soon(start_in_turns, call_soon, steps, done)
        return LATER

    return start
