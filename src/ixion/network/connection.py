"""One client's connection: the protocol that the event loop calls, around the sans-IO state in `wire.server`.

The path of a request: the loop asks where to put bytes (`get_buffer`), they come (`buffer_updated`) and count in the
memory pool, the request is whole, it goes to the request channel. From then on the connection is muted until the answer
has left, so that one request is in flight. If there is no memory, the connection stops reading and waits for some.

Muting costs nothing for a client that waits for its answers: reading is paused only when more than a few KiB come while
muted (`network.read_buffer`). These count in the memory pool; the rest stays in the client's socket. While a muted
connection is read from, we notice that its client has gone, and the operation that waits for it is cancelled.

A client that has closed only its sending half looks the same at first: the stream ends. It may still read, so it gets
its answer, as from Kafka; but an operation that waits for others is cancelled after `half_closed_ms`.

`network.response_writer` writes the answer. `network.overdue` watches the time. Loop thread only.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from ixion._native import i64
from ixion.model.errors import KafkaError
from ixion.network.busy_poll import SMALL
from ixion.network.limits import LAST_WORD_MS, REFUSED, joined
from ixion.network.memory_pool import LARGE
from ixion.network.overdue import NEVER, Overdue
from ixion.network.read_buffer import AHEAD
from ixion.network.request import Request
from ixion.network.response_writer import SENT, TURN_OVER, ResponseWriter
from ixion.network.slow_senders import GRACE_NS
from ixion.security.gate import ANONYMOUS, Gate
from ixion.security.principal import principal_of
from ixion.security.principal_rules import NoRuleError, PrincipalRules
from ixion.wire.faults import WireError
from ixion.wire.server import ServerConnection

if TYPE_CHECKING:
    from ixion.acl.rights import Rights
    from ixion.network.processor import Processor

log = logging.getLogger("ixion.network")


class Connection:
    def __init__(
        self,
        processor: Processor,
        number: int,
        listener: str,
        address: str,
        gate: Gate | None = None,
        first_max_bytes: i64 = 0,
        principal_rules: PrincipalRules | None = None,
    ) -> None:
        """`gate`: clients of the listener authenticate; until then a request has `first_max_bytes` at most."""
        shared = processor.plane.shared
        self.processor = processor
        self.number = number
        self.listener = listener
        self.address = address
        self.gate = gate
        self.principal = ANONYMOUS
        self._principal_rules = principal_rules
        self.rights: Rights | None = None  # of the principal, once there was a request; only with an authorizer
        self.closing = False
        self.last_active_ns: i64 = shared.clock()
        self._shared = shared
        self._busy_poll = shared.busy_poll
        self._channel = processor.plane.channel
        self._clock = shared.clock
        self._pool = shared.pool
        self._counters = shared.counters
        self._times = shared.times
        self._stalls = shared.stalls
        self._read_buffer = shared.read_buffer
        self._wire = ServerConnection(shared.limits.request_max_bytes if gate is None else first_max_bytes)
        self._transport: asyncio.Transport | None = None
        self._in_flight: Request | None = None
        self._counted: i64 = 0  # bytes in the pool that are in `_wire`
        self._large = False  # whether they count as those of a large request
        self._begun_ns: i64 = 0  # when half a request was here and we began to read the rest
        self._small = False  # both the last request and its response
        self._throttled_ms: i64 = 0  # how long to wait after the answer in flight
        self._held = False  # waits for memory or for room in the queue
        self._reading_paused = False
        self._is_tls = False
        self._writer = ResponseWriter()
        self._ended = False  # the client has sent its last byte
        self._last = False  # close once the request in flight is answered
        self._reason = "peer"
        self._overdue = Overdue(self)

    @property
    def busy(self) -> bool:
        """Whether the broker owes an answer."""
        return self._in_flight is not None

    @property
    def waits_for_us(self) -> bool:
        """Whether the client can do nothing: it waits for an answer, or for memory."""
        return self._in_flight is not None or self._held

    @property
    def id(self) -> str:
        """As Kafka writes it: local address, remote address, processor, number."""
        transport = self._transport
        here = there = "?"
        if transport is not None:
            here = joined(transport.get_extra_info("sockname"))
            there = joined(transport.get_extra_info("peername"))
        return f"{here}-{there}-{self.processor.index}-{self.number}"

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        sending = cast(asyncio.Transport, transport)
        self._transport = sending
        certificate = sending.get_extra_info("peercert")
        refused = False
        if certificate:
            try:
                self.principal = principal_of(certificate, self._principal_rules)
            except NoRuleError as error:
                log.info("closed a connection from %s: %s", self.address, error)
                refused = True
        # Paused as soon as anything is left over. A TLS transport takes 0 for "always".
        self._is_tls = sending.get_extra_info("sslcontext") is not None
        sending.set_write_buffer_limits(1 if self._is_tls else 0, 0)
        self._overdue.arm()
        self.processor.register(self)
        if refused:
            self.close(REFUSED)

    def get_buffer(self, _size_hint: int) -> memoryview:
        if self._in_flight is None and self._pool.may_read(self, self._large):
            return self._read_buffer.wide
        return self._read_buffer.narrow

    def buffer_updated(self, size: int) -> None:
        if self.closing:
            return
        begun_ns = self._stalls.begin()
        self._busy_poll.heard()
        self.last_active_ns = self._clock()
        self._counters.bytes_in += size
        self._wire.receive_from(self._read_buffer.wide[:size])
        if self._in_flight is None and not self._held:
            self._read_next()
        else:
            self._count(self._large)
            if self._counted > AHEAD or not self._pool.has_room(self._large):
                self._pause_reading()
        self._stalls.end(begun_ns, self)

    def eof_received(self) -> bool:
        """The client sends no more. Answer what it has sent, then close the connection."""
        self._ended = True
        if self._in_flight is not None and self._overdue.due_ns == NEVER:
            self._overdue.expect(self._shared.limits.half_closed_ms)
        return self.waits_for_us and not self._is_tls  # TLS has no connections that are closed by half

    def pause_writing(self) -> None:
        self._writer.paused = True
        transport = self._transport
        if transport is None or self.closing:
            return
        # The part that has left is kept with the rest, so the whole counts as memory.
        self._shared.slow_readers.add(self, self._writer.written)
        self._overdue.expect(self._shared.limits.patience_ms(transport.get_write_buffer_size()))

    def resume_writing(self) -> None:
        begun_ns = self._stalls.begin()
        self._writer.paused = False
        self._shared.slow_readers.remove(self)
        self._overdue.due_ns = NEVER
        request = self._in_flight
        # A TLS transport may pause and resume within one write: then the writer itself sees that it can go on.
        if request is not None and request.answered and not self._writer.writing:
            if self._writer.has_more:
                self._write_on()
            else:
                self._sent()
        self._stalls.end(begun_ns, self)

    def connection_lost(self, _error: Exception | None) -> None:
        self.closing = True
        self._transport = None
        self._writer.drop()
        self._overdue.cancel()
        self._shared.slow_readers.remove(self)
        self._channel.forget(self)
        self._let_go()
        self.processor.unregister(self, self._reason)
        request = self._in_flight
        if request is not None:
            request.lost()

    # What the stages call

    def send(self, request: Request) -> None:
        """Send the answer to the request in flight, if it has one."""
        request_size = request.frame.size
        request.release()
        if request is not self._in_flight:
            raise RuntimeError("an answer to a request that is not in flight")
        transport = self._transport
        if transport is None or self.closing:
            self._in_flight = None
            return
        parts = request.parts
        if parts is None:
            self._sent()
            return
        request.parts = None  # the transport has what is left; a closed connection must not keep it until collected
        try:
            state = self._writer.write(transport, parts)
        except KafkaError as error:
            self._cannot_finish(error)
            return
        size = self._writer.size
        self._small = request_size + size <= SMALL
        self._counters.responses += 1
        self._counters.bytes_out += size
        if state == SENT:
            self._sent()
        elif state == TURN_OVER:
            self._shared.loop.call_soon(self._write_on)

    def go_on(self) -> None:
        """There is memory again, or room in the queue."""
        self._held = False
        if self._in_flight is None and not self.closing:
            self.last_active_ns = self._clock()
            self._resume_reading()
            self._read_next()

    def finish(self) -> None:
        """The server stops: close now, or after the answer that the client waits for."""
        if self._in_flight is None:
            self._ended = True
            self.close("shutdown")
        else:
            self.end_with_answer("shutdown")

    def end_with_answer(self, reason: str) -> None:
        """Close once the request in flight is answered."""
        self._ended = True
        self._last = True
        self._reason = reason
        self._pause_reading()

    def authenticated(self, principal: str) -> None:
        """The client has authenticated: from now on its requests may have the full size."""
        self.principal = principal
        self.rights = None
        self._wire.set_limit(self._shared.limits.request_max_bytes)

    def expect_messages(self, bare: bool) -> None:
        """Whether the client sends bare SASL messages next, as it does after SaslHandshake 0."""
        self._wire.expect_messages(bare)

    def throttle(self, wait_ms: i64) -> None:
        """Do not read on for so long after the answer to the request in flight."""
        self._throttled_ms = max(self._throttled_ms, wait_ms)

    def refuse(self, reason: str, what: str) -> None:
        """The peer does not speak Kafka's protocol."""
        if not self.closing:
            self._shared.strangers.met(self.address, self.listener, what)
            self.close(reason)

    def close(self, reason: str) -> None:
        transport = self._transport
        if self.closing or transport is None:
            return
        self.closing = True
        self._reason = reason
        self._channel.forget(self)
        self._let_go()
        if self._writer.paused:
            transport.abort()  # the client does not read what is left
        else:
            transport.close()

    def cut_off(self) -> None:
        """Close now, even if the client waits for an answer."""
        if self._transport is not None:
            self.closing = True
            self._transport.abort()

    def limits_changed(self) -> None:
        if self.gate is None or self.gate.is_open:
            self._wire.set_limit(self._shared.limits.request_max_bytes)
        self._overdue.arm()

    def is_slow(self, now_ns: i64) -> bool:
        """Whether to close this connection for its half request, because others wait for memory."""
        due_ns = self._counted * 1_000_000_000 // self._shared.limits.slowest_bytes_per_second
        return now_ns - self.last_active_ns >= GRACE_NS or now_ns - self._begun_ns >= GRACE_NS + due_ns

    def is_overdue(self) -> None:
        """The client should have gone on by now."""
        request = self._in_flight
        if self._writer.paused:
            self.close("slow_reader")
        elif request is None:
            self.close("slow_sender")
        elif request.waits:
            self.close("peer")  # its stream ended long ago, so it has probably gone
        else:
            self._overdue.expect(self._shared.limits.half_closed_ms)  # we are still working on its answer

    # What happens inside

    def _read_next(self) -> None:
        """Send the next request to the channel, if it is whole and there is memory and room for it."""
        wire = self._wire
        try:
            size = wire.announced()
            if size < 0:
                self._count(False)
                self._stop_if_ended()
                return
            if self._channel.full:
                self._count(size > LARGE)
                self._hold()
                self._channel.wait(self)
                return
            frame = wire.next_request()
        except WireError as error:
            self.refuse(error.looks.value, str(error))
            return
        if frame is None:
            self._count(size > LARGE)
            self._read_rest(size)
            return
        if self._overdue.due_ns != NEVER:
            self._overdue.due_ns = NEVER
            self._shared.slow_senders.remove(self)
        request = Request(self, frame, self.last_active_ns, self._pool, self._wire.keeps(frame))
        self._in_flight = request
        if self._ended:
            self._overdue.expect(self._shared.limits.half_closed_ms)
        self._count(False)
        self._counters.requests += 1
        self._channel.send_request(request)

    def _read_rest(self, size: i64) -> None:
        """Half a request is here: read on if there is memory, else wait for it."""
        if self._ended:
            self.close("peer")
        elif not self._pool.may_read(self, self._large) and self._pool.wait(self, self._large):
            self._hold()
            self._shared.slow_senders.press()
        elif self._overdue.due_ns == NEVER:
            self._begun_ns = self.last_active_ns
            self._shared.slow_senders.add(self)
            self._overdue.expect(self._shared.limits.patience_ms(size))

    def _count(self, large: bool) -> None:
        """Count in the pool what has come of the next requests. `large`: whether the first of them is."""
        held = self._wire.held
        counted = self._counted
        if held != counted or large != self._large:
            was_large = self._large
            self._counted = held
            self._large = large
            self._pool.take(held, large)
            if counted:
                self._pool.release(counted, was_large)

    def _let_go(self) -> None:
        """Drop what has come of the next requests now: this object itself goes only with the next collection."""
        self._wire.drop()
        self._count(False)
        self._shared.slow_senders.remove(self)
        if self._in_flight is None:
            self._pool.leave(self)  # otherwise the request does, when it is released

    def _write_on(self) -> None:
        """Write more of the response, until the client takes no more or others should have their turn."""
        transport = self._transport
        if transport is None or self.closing or not self._writer.has_more:
            return
        try:
            state = self._writer.write_on(transport)
        except KafkaError as error:
            self._cannot_finish(error)
            return
        if state == SENT:
            self._sent()
        elif state == TURN_OVER:
            self._shared.loop.call_soon(self._write_on)

    def _cannot_finish(self, error: KafkaError) -> None:
        log.warning("a response to %s cannot be finished: %s", self.address, error)
        self._reason = "unreadable"
        self.cut_off()

    def _sent(self) -> None:
        request = self._in_flight
        self._in_flight = None
        self.last_active_ns = self._clock()
        if request is not None:
            self._times.note(request.frame.api_key, self.last_active_ns - request.received_ns)
        self._wire.answered()
        if self._last:
            if self._reason == REFUSED:
                self._shared.timer.call_later(LAST_WORD_MS, lambda: self.close(REFUSED))
            else:
                self.close(self._reason)
            return
        if self._small:
            self._small = False
            self._busy_poll.answered()
        if self._throttled_ms > 0:
            self._wait_throttled()
            return
        self._resume_reading()
        self._read_next()

    def _wait_throttled(self) -> None:
        """Read no further request for as long as the quota says."""
        self._hold()
        self._shared.timer.call_later(self._throttled_ms, self.go_on)
        self._throttled_ms = 0

    def _hold(self) -> None:
        self._held = True
        self._overdue.due_ns = NEVER  # the client waits for us
        self._shared.slow_senders.remove(self)
        self._pause_reading()

    def _stop_if_ended(self) -> None:
        if self._ended:
            self.close("peer")

    def _pause_reading(self) -> None:
        if not self._reading_paused and not self.closing and self._transport is not None:
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused and not self.closing and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
