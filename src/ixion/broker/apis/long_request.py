"""Decodes a request with very many elements in turns of the loop, then handles it.

A fetch of 100,000 partitions takes 30 to 50 ms to decode. Only other such requests wait for that: they share one lane
(`timer.lane`), so that many of them get no more of the loop than one. The decoded request counts in the memory pool
until it is released. If the client disconnects meanwhile, decoding stops.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from ixion.broker.apis.call import Begin, Call, Outcome
from ixion.broker.apis.distinct import Rule, reduce_steps
from ixion.language.protocol.notation import Struct
from ixion.timer.lane import Job
from ixion.timer.payer import PAYER
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.network.request import Request

ELEMENT_BYTES: Final = 200  # memory of one decoded element; 100 to 240 were measured


class LongRequest:
    def __init__(
        self, request: Request, handle: Begin, rules: dict[str, Rule], unanswered: Callable[[Request, int], None]
    ) -> None:
        """`unanswered` gets the nanoseconds that were spent on a request whose handler is not called."""
        self._request = request
        self._unanswered = unanswered
        self._job: Job | None = None
        self._handle = handle
        self._rules = rules
        self._spent_ns = 0  # on decoding
        self._spend = self._add

    def _add(self, used_ns: int) -> None:
        self._spent_ns += used_ns

    def start(self) -> None:
        begun_ns = perf_counter_ns()
        before, PAYER.current = PAYER.current, self._spend
        try:
            job = self._request.lane.run(self._decode(), self._decoded)
        finally:
            PAYER.current = before
        self._add(perf_counter_ns() - begun_ns)
        if job.pending:
            self._job = job
            _ = self._request.frame.header  # it stays when the bytes are dropped
            self._request.on_gone(self._gone)

    def _gone(self) -> None:
        """The client has disconnected."""
        if self._job is not None:
            self._job.cancel()
        self._unanswered(self._request, self._spent_ns)

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
            self._unanswered(request, self._spent_ns)
            request.fail(error)
            return
        call.spent_ns = self._spent_ns
        try:
            settle(call, self._handle(call))
        except Exception as failure:
            request.fail(failure)


def settle(call: Call, outcome: Outcome) -> None:
    if outcome is None:
        call.no_response()
    elif isinstance(outcome, Struct):
        call.respond(outcome)
