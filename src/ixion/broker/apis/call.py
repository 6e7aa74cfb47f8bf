"""A decoded request, the argument of a handler.

A handler returns

- the body of the response,
- `LATER`, if an operation in a purgatory will call `respond` itself, once,
- `None` if the client expects no response (Produce with acks=0),
- a generator or a coroutine that returns one of these, for work that takes longer (`apis.begin`).

An error in a part of a request becomes a code in the response. An exception closes the connection.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ixion.language.protocol.codec.sink import Part
from ixion.language.protocol.envelope import frame_at_once, frame_steps
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.payer import PAYER
from ixion.timer.turns import Steps, run_turn

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights
    from ixion.broker.network.request import Request


class Call:
    def __init__(self, request: Request, header: RequestHeader, body: Struct) -> None:
        self.request = request
        self.header = header
        self.version: int = header.api_version
        self._body: Struct | None = body
        self.rights: Rights | None = None  # of the client; None without an authorizer: everything is allowed
        self.meter: Callable[[Struct], int] | None = None  # with quotas: the throttle time of a response
        self.charge: Callable[[int], None] = free  # with quotas: record this many partition changes, or refuse them
        self.spend: Callable[[int], None] = free  # with quotas: record nanoseconds of work after the first turn
        self.spent_ns = 0  # on the request before its handler was called
        self.amend: Callable[[Struct], Steps[Struct]] | None = None  # the guard's changes to the response

    @property
    def body(self) -> Struct:
        """The decoded request; not available after `release`."""
        body = self._body
        assert body is not None, "the request was released"
        return body

    def narrow(self, body: Struct) -> None:
        """Replace the request by the part that the client has the right to."""
        self._body = body

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def listener(self) -> str:
        """The name of the client's listener; responses contain the addresses of this listener."""
        return self.request.listener

    @property
    def principal(self) -> str:
        """The client's principal, such as User:alice; empty without an authorizer, where nothing depends on it."""
        rights = self.rights
        return "" if rights is None else rights.principal

    @property
    def address(self) -> str:
        """The client's address, without the port."""
        return self.request.address

    def respond(self, body: Struct) -> None:
        """Send the response. If it cannot be encoded, the connection is closed; the caller gets no error."""
        try:
            parts = self.encode(body)
        except Exception as error:
            self.request.fail(error)
            return
        if not isinstance(parts, Later):
            self.request.respond(parts)

    def encode(self, body: Struct) -> list[Part] | Later:
        """The encoded response; LATER if it has very many elements: then it is encoded in turns and sent."""
        spend = self.spend
        if spend is free or spend is PAYER.current:  # a turn that is measured as a whole
            return self._encode(body)
        before, PAYER.current = PAYER.current, spend
        begun_ns = perf_counter_ns()
        try:
            return self._encode(body)
        finally:
            PAYER.current = before
            spend(perf_counter_ns() - begun_ns)

    def _encode(self, body: Struct) -> list[Part] | Later:
        if self.meter is not None:
            body = self._throttled(body, self.meter(body))
        if self.amend is not None:
            return self._amend(body)
        parts = frame_at_once(self.header, body)
        if parts is None:
            self.request.lane.run(frame_steps(self.header, body), self._encoded)
            return LATER
        return parts

    def _throttled(self, body: Struct, wait_ms: int) -> Struct:
        """Set the throttle time in the response, and stop reading the connection for that time (KIP-219)."""
        if wait_ms <= 0:
            return body
        self.request.connection.throttle(wait_ms)
        return body.replace(throttle_time_ms=wait_ms) if hasattr(body, "throttle_time_ms") else body

    def _amend(self, body: Struct) -> list[Part] | Later:
        steps = self._amended(body)
        result = run_turn(steps)
        if result is not None:
            return result[0]
        self.request.lane.run(steps, self._encoded)
        return LATER

    def _amended(self, body: Struct) -> Steps[list[Part]]:
        amend = self.amend
        assert amend is not None
        body = yield from amend(body)
        parts = frame_at_once(self.header, body)
        if parts is None:
            parts = yield from frame_steps(self.header, body)
        return parts

    def _encoded(self, parts: list[Part] | None, error: Exception | None) -> None:
        if parts is not None:
            self.request.respond(parts)
        elif error is not None:
            self.request.fail(error)

    def no_response(self) -> None:
        self.request.no_response()

    def fail(self) -> None:
        """Close the connection: there will be no response."""
        request = self.request
        request.release()
        request.connection.processor.plane.shared.times.note_failed(request.frame.api_key)
        request.connection.close("handler_failed")

    def release(self) -> None:
        """Return the memory of the request and drop `body`. A handler that waits for other clients calls this first.

        The pool counts these bytes as free from now on, so a waiting operation must not keep record data of `body`,
        which points into them.
        """
        self._body = None
        self.request.release()

    def wait_for_others(self) -> None:
        """The response depends on other clients. If this one disconnects first, only the response is dropped."""
        if not self.request.answered:
            self.release()
            self.on_gone(nothing)

    def on_gone(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` if the client disconnects while its response waits for other clients."""
        self.request.on_gone(cancel)


def free(_count: int) -> None:
    """For a client without a quota."""


def nothing() -> None:
    """For an operation that needs no cancelling."""


Outcome = Struct | Later | None
Work = Outcome | Steps[Outcome] | Coroutine[Any, Any, Outcome]
Handle = Callable[[Call], Work]
Begin = Callable[[Call], Outcome]
