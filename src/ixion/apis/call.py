"""One request, decoded, on its way through a handler.

A handler returns

- the body of the answer,
- `LATER`, and then calls `respond` itself, once: whatever waits in a purgatory,
- `None` if the client expects no answer (Produce with acks=0),
- an awaitable of one of these, for work on another thread. It keeps one of num.io.threads places until it is done,
  so it is for short work.

What is wrong with a part of a request is a code in its answer. An exception closes the connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ixion.protocol.codec.sink import Part
from ixion.protocol.envelope import frame_at_once, frame_steps
from ixion.protocol.headers import RequestHeader
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps, run_turn
from ixion.wire.answer import LATER, Later

if TYPE_CHECKING:
    from ixion.acl.rights import Rights
    from ixion.network.request import Request


class Call:
    def __init__(self, request: Request, header: RequestHeader, body: Struct) -> None:
        self.request = request
        self.header = header
        self.version: int = header.api_version
        self._body: Struct | None = body
        self.rights: Rights | None = None  # of the client; None (no authorizer): it may do everything
        self.meter: Callable[[Struct], int] | None = (
            None  # with quotas: how long the client must wait behind the answer
        )
        self.charge: Callable[[int], None] = free  # with quotas: note so many changes of partitions, or refuse them
        self.amend: Callable[[Struct], Steps[Struct]] | None = None  # what the check of rights adds to or takes away

    @property
    def body(self) -> Struct:
        """The request, decoded; gone once it is released."""
        body = self._body
        assert body is not None, "the request was released"
        return body

    def narrow(self, body: Struct) -> None:
        """Go on with a part of the request: the client has no right to the rest."""
        self._body = body

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def listener(self) -> str:
        """The name of the listener that the client connected to; answers have the addresses of that one."""
        return self.request.listener

    @property
    def principal(self) -> str:
        """The client's, such as User:alice; empty without an authorizer, where nothing depends on it."""
        rights = self.rights
        return "" if rights is None else rights.principal

    @property
    def address(self) -> str:
        """The client's, without the port."""
        return self.request.address

    def respond(self, body: Struct) -> None:
        """Send the answer. If it cannot be written, the connection is closed; the caller is not at fault."""
        try:
            parts = self.encode(body)
        except Exception as error:
            self.request.fail(error)
            return
        if not isinstance(parts, Later):
            self.request.respond(parts)

    def encode(self, body: Struct) -> list[Part] | Later:
        """The answer; LATER if it has very many elements: then it is written in turns and sent."""
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
        """The only place that tells a client how long to wait. Its connection is not read until then (KIP-219)."""
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
        """Close the connection: the answer that the client waits for will not come."""
        request = self.request
        request.release()
        request.connection.processor.plane.shared.times.note_failed(request.frame.api_key)
        request.connection.close("handler_failed")

    def release(self) -> None:
        """Return the memory of the request and drop `body`. A handler that waits for other clients does it first.

        The pool counts these bytes as free from now on, so nothing that waits may keep a part of `body` that points
        into them: record data.
        """
        self._body = None
        self.request.release()

    def wait_for_others(self) -> None:
        """The answer depends on other clients. If this one disconnects first, only the answer is dropped."""
        if not self.request.answered:
            self.release()
            self.on_gone(nothing)

    def on_gone(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` if the client disconnects while its answer waits for others; no response is needed then."""
        self.request.on_gone(cancel)


def free(_count: int) -> None:
    """There is no quota on changes."""


def nothing() -> None:
    """There is nothing to cancel."""


Outcome = Struct | Later | None
Handle = Callable[[Call], Outcome | Awaitable[Outcome]]
