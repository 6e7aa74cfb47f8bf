"""One client's connection: the protocol that the event loop calls, around the sans-IO state in `wire.server`.

The path of a request: the loop asks where to put bytes (`get_buffer`), reports them (`buffer_updated`), and they count
in the memory pool. A complete request goes to the request channel. Then the connection is muted until the response is
sent, so that only one request is in flight. If the pool is full, the connection stops reading and waits for memory.

A muted connection still reads: it pauses only when more than a few KiB arrive (`network.read_buffer`). These count in
the memory pool; the rest stays in the socket. Because it reads, we notice when the client closes the connection, and
cancel the operation that waits for it.

If a client has closed only its sending half, the stream ends too. It may still read, so it gets its response, as from
Kafka; but an operation that waits for other clients is cancelled after `half_closed_ms`.

`network.response_writer` writes the response. `network.overdue` watches the time. Loop thread only.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ixion._native import i64
from ixion.broker.network.busy_poll import SMALL
from ixion.broker.network.limits import LAST_WORD_MS, REFUSED, joined
from ixion.broker.network.memory_pool import LARGE
from ixion.broker.network.overdue import LOGIN_NS, NEVER, Overdue
from ixion.broker.network.read_buffer import AHEAD
from ixion.broker.network.request import Request
from ixion.broker.network.response_writer import SENT, TURN_OVER, ResponseWriter
from ixion.broker.network.slow_senders import GRACE_NS
from ixion.broker.security.principal import ANONYMOUS, principal_of
from ixion.language.model.errors import KafkaError
from ixion.language.wire.faults import WireError
from ixion.language.wire.server import ServerConnection

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights
    from ixion.broker.network.processor import Processor
    from ixion.broker.security.gate import Gate
    from ixion.broker.security.principal_rules import PrincipalRules

log = logging.getLogger("ixion.broker.network")


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
        """`gate`: clients must authenticate; until then a request may have `first_max_bytes` at most."""
        shared = processor.plane.shared
        self.processor = processor
        self.number = number
        self.listener = listener
        self.address = address
        self.gate = gate
        self.principal = ANONYMOUS
        self._principal_rules = principal_rules
        self.rights: Rights | None = None  # of the principal, from the first request on; only with an authorizer
        self.client_id = ""  # as the client has introduced itself, with ApiVersions
        self.software = ""  # the client's library and its version
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
        self._counted: i64 = 0  # bytes in `_wire` that count in the pool
        self._large = False  # whether they count as those of a large request
        self._begun_ns: i64 = 0  # when we began to read the rest of a request
        self._small = False  # the last request and its response together are small
        self._throttled_ms: i64 = 0  # how long to wait after the response in flight
        self._held = False  # waits for memory or for room in the queue
        self._reading_paused = False
        self._is_tls = False
        self._writer = ResponseWriter()
        self._ended = False  # the client has closed its sending half
        self._last = False  # close after the response to the request in flight
        self._reason = "peer"
        self._overdue = Overdue(self)
        self._on_closed: list[Callable[[], None]] | None = None

    @property
    def busy(self) -> bool:
        """Whether a request is in flight."""
        return self._in_flight is not None

    @property
    def in_flight(self) -> Request | None:
        return self._in_flight

    @property
    def waits_for_us(self) -> bool:
        """Whether the client waits for us: for a response, or for memory."""
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
            from ixion.broker.security.principal_rules import NoRuleError

            try:
                self.principal = principal_of(certificate, self._principal_rules)
            except NoRuleError as error:
                log.info("closed a connection from %s: %s", self.address, error)
                refused = True
        # Pause as soon as a write leaves bytes over. A TLS transport would always pause with a limit of 0.
        self._is_tls = sending.get_extra_info("sslcontext") is not None
        sending.set_write_buffer_limits(1 if self._is_tls else 0, 0)
        gate = self.gate
        if gate is not None:
            if gate.is_open:  # a session of the live page (`SocketServer.connect_within`)
                self.authenticated(gate.principal)
            else:
                self._overdue.login_ns = self._shared.clock() + LOGIN_NS
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
        """The client has closed its sending half. Respond to what it has sent, then close the connection."""
        self._ended = True
        if self._in_flight is not None and self._overdue.due_ns == NEVER:
            self._overdue.expect(self._shared.limits.half_closed_ms)
        return self.waits_for_us and not self._is_tls  # a TLS connection cannot be half-closed

    def pause_writing(self) -> None:
        self._writer.paused = True
        transport = self._transport
        if transport is None or self.closing:
            return
        # The transport keeps the sent part with the rest, so the whole write counts as memory.
        self._shared.slow_readers.add(self, self._writer.written)
        self._overdue.expect(self._shared.limits.patience_ms(transport.get_write_buffer_size()))

    def resume_writing(self) -> None:
        begun_ns = self._stalls.begin()
        self._writer.paused = False
        self._shared.slow_readers.remove(self)
        self._overdue.due_ns = NEVER
        request = self._in_flight
        # A TLS transport may pause and resume within one write: then the writer itself continues.
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
        callbacks = self._on_closed
        if callbacks is not None:
            self._on_closed = None
            for callback in callbacks:
                callback()

    # What the stages call

    def on_closed(self, callback: Callable[[], None]) -> None:
        """Call this when the connection is closed, for state that belongs to it."""
        if self._transport is None:
            callback()
        elif self._on_closed is None:
            self._on_closed = [callback]
        else:
            self._on_closed.append(callback)

    def no_longer_on_closed(self, callback: Callable[[], None]) -> None:
        if self._on_closed is not None and callback in self._on_closed:
            self._on_closed.remove(callback)

    def send(self, request: Request) -> None:
        """Send the response to the request in flight, if it has one."""
        request_size = request.frame.size
        request.release()
        if request is not self._in_flight:
            raise RuntimeError("a response to a request that is not in flight")
        transport = self._transport
        if transport is None or self.closing:
            self._in_flight = None
            return
        parts = request.parts
        if parts is None:
            self._sent()
            return
        request.parts = None  # the transport has the rest; do not keep a second reference until garbage collection
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
        """Continue: there is memory again, or room in the queue."""
        self._held = False
        if self._in_flight is None and not self.closing:
            self.last_active_ns = self._clock()
            self._resume_reading()
            self._read_next()

    def finish(self) -> None:
        """The server stops: close now, or after the response to the request in flight."""
        if self._in_flight is None:
            self._ended = True
            self.close("shutdown")
        else:
            self.end_with_answer("shutdown")

    def end_with_answer(self, reason: str) -> None:
        """Close after the response to the request in flight."""
        self._ended = True
        self._last = True
        self._reason = reason
        self._pause_reading()

    def authenticated(self, principal: str) -> None:
        """The client has authenticated: from now on its requests may have the full size."""
        self.principal = principal
        self._overdue.login_ns = NEVER
        self.rights = None
        self._wire.set_limit(self._shared.limits.request_max_bytes)

    def expect_messages(self, bare: bool) -> None:
        """Whether the client sends bare SASL messages next, as it does after SaslHandshake 0."""
        self._wire.expect_messages(bare)

    def throttle(self, wait_ms: i64) -> None:
        """Do not read for this long after the response to the request in flight."""
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
            transport.abort()  # the client does not read the rest of the response
        else:
            transport.close()

    def cut_off(self) -> None:
        """Close now, even if the client waits for a response."""
        if self._transport is not None:
            self.closing = True
            self._transport.abort()

    def limits_changed(self) -> None:
        if self.gate is None or self.gate.is_open:
            self._wire.set_limit(self._shared.limits.request_max_bytes)
        self._overdue.arm()

    def is_slow(self, now_ns: i64) -> bool:
        """Whether to close this connection, whose request arrives too slowly while others wait for memory."""
        due_ns = self._counted * 1_000_000_000 // self._shared.limits.slowest_bytes_per_second
        return now_ns - self.last_active_ns >= GRACE_NS or now_ns - self._begun_ns >= GRACE_NS + due_ns

    def is_overdue(self) -> None:
        """The client has exceeded a time limit."""
        request = self._in_flight
        if self._writer.paused:
            self.close("slow_reader")
        elif request is None:
            self.close("slow_sender")
        elif request.waits:
            self.close("peer")  # the client closed its sending half long ago, so it has probably gone
        else:
            self._overdue.expect(self._shared.limits.half_closed_ms)  # its request is still being handled

    # What happens inside

    def _read_next(self) -> None:
        """Send the next request to the channel, if it is complete and there is memory and room for it."""
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
        """Part of a request has arrived: read on if there is memory, else wait for it."""
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
        """Count the bytes of the next requests in the pool. `large`: the first of them is a large one."""
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
        """Drop the bytes of the next requests now: this object is freed only by the next garbage collection."""
        self._wire.drop()
        self._count(False)
        self._shared.slow_senders.remove(self)
        if self._in_flight is None:
            self._pool.leave(self)  # otherwise the request calls it when it is released

    def _write_on(self) -> None:
        """Write more of the response, until the client accepts no more or other connections get their turn."""
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
        """Read no further request until the throttle time is over."""
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
