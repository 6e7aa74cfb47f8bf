"""HTTP/1.1 for the pages: one connection, its requests one after the other. The protocol itself is h11's.

These are bounded: the head of a request in bytes and in time, the number of connections, how long a client may be idle
or take to read. Only a POST to an address of programs (`guard.TAKES_POSTS`) has a body: JSON with its length in front,
of at most `BODY_MAX` bytes, and `BODIES_MAX` of all requests together. It is read before the request is answered, in
the time that a request has.

Connections that do nothing make room for those that come: of `CONNECTIONS_MAX`, the one that has been idle for longest
is closed. So a probe of /healthz is answered however many idle connections are open. At most `STREAMS_MAX` of them are
streams, which are never closed for others, and `BUSY_MAX` wait for a page.

h11 takes 20 ms and 1.3 MB to import, so it is imported with the first connection, on another thread.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, cast

import h11

from ixion.broker.web.guard import HEADERS, OPEN_PATHS, Guard, check_post
from ixion.broker.web.request import HttpRequest, read_target
from ixion.broker.web.response import PHRASES, TEXT, Ask, RefusedError, Response, Stream, plain

HEAD_MAX: Final = 8192  # bytes
CONNECTIONS_MAX: Final = 128
STREAMS_MAX: Final = 64
BUSY_MAX: Final = 32  # requests that are answered at a time, besides streams and probes
PATIENCE_S: Final = 30  # for a whole request, and for the client to read the response
HALF_CLOSED_S: Final = 5  # for the response to a client that has closed its sending half
METHODS: Final = ("GET", "HEAD", "POST")
BODY_MAX: Final = 512 * 1024
BODIES_MAX: Final = 8 * 1024 * 1024

logger = logging.getLogger(__name__)


class Connections:
    """All connections of the server, those that are idle in the order in which they became so."""

    def __init__(self, ask: Ask, guard: Guard) -> None:
        self.ask = ask
        self.guard = guard
        self.all: dict[HttpConnection, None] = {}
        self.idle: dict[HttpConnection, None] = {}
        self.streams = 0
        self.busy = 0
        self.body_bytes = 0  # announced by requests that are read or answered

    def admit(self, connection: HttpConnection) -> bool:
        """False if there is no room: every connection is answered at this moment."""
        if len(self.all) >= CONNECTIONS_MAX:
            if not self.idle:
                return False
            next(iter(self.idle)).abort()
        self.all[connection] = None
        return True

    def close(self) -> None:
        for connection in list(self.all):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MAX)
        self._head: HttpRequest | None = None  # of a request whose body is being read
        self._body = bytearray()
        self._reserved = 0  # bytes of a body that count in `Connections.body_bytes`
        self._task: asyncio.Task[None] | None = None  # responds to a request
        self._deadline: asyncio.TimerHandle | None = None
        self._writable: asyncio.Future[None] | None = None  # set while the client does not read
        self._last = False  # nothing is read after the present response
        self._streaming = False

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._be_patient()
        if self._connections.admit(self):
            self._connections.idle[self] = None
        else:
            self._refuse(503, "too many requests at this moment")

    def data_received(self, data: bytes) -> None:
        if self._last:
            return
        try:
            self._http.receive_data(data)
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))
            return
        if self._task is None:
            self._read_next()
        elif self._transport is not None:
            self._transport.pause_reading()  # one request at a time

    def eof_received(self) -> bool:
        """The client has closed its sending half, or is gone. It gets the response under way if that comes soon."""
        self._last = True
        if self._task is None or self._streaming:
            return False
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(HALF_CLOSED_S, self.abort)
        transport = self._transport
        return transport is not None and transport.get_extra_info("sslcontext") is None  # TLS has no half

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self._loop.create_future()
            self._be_patient()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)
        if self._task is not None and self._deadline is not None:
            self._deadline.cancel()

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self._forget()
        self._give_back()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        self._forget()
        if self._transport is not None:
            self._transport.abort()

    def _forget(self) -> None:
        self._connections.all.pop(self, None)
        self._connections.idle.pop(self, None)

    def _give_back(self) -> None:
        self._connections.body_bytes -= self._reserved
        self._reserved = 0
        self._body = bytearray()

    def _be_patient(self) -> None:
        """The time runs from the end of the last response: a head that comes byte by byte does not prolong it."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(PATIENCE_S, self.abort)

    # Reading

    def _read_next(self) -> None:
        if self._transport is None or self._transport.is_closing() or self._last:
            return
        try:
            while self._task is None:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data) and self._head is not None:
                    self._body += event.data  # no more than was announced: h11 counts
                elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                    head, self._head = self._head, None
                    self._start(head._replace(body=bytes(self._body)))
                elif event in (h11.NEED_DATA, h11.PAUSED):
                    return
                else:  # the client has closed its half
                    self._transport.close()
                    return
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))
        except RefusedError as refusal:
            self._refuse(refusal.status, refusal.text)

    def _begin(self, event: h11.Request) -> None:
        method = event.method.decode("ascii")
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
        if method not in METHODS:
            raise RefusedError(405, "GET, HEAD and POST only")
        path, query = read_target(event.target)
        size = 0
        if method == "POST":
            size = check_post(path, headers, BODY_MAX)
        elif headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            raise RefusedError(413, "a request has no body here")
        self._connections.guard.check(path, headers, method)
        peer = None if self._transport is None else self._transport.get_extra_info("peername")
        request = HttpRequest(method, path, query, headers, address=str(peer[0]) if peer else "")
        if size == 0:
            self._start(request)
            return
        if self._connections.body_bytes + size > BODIES_MAX:
            raise RefusedError(503, "too many bytes are being sent at this moment")
        self._connections.body_bytes += size
        self._reserved = size
        self._head = request
        if self._http.they_are_waiting_for_100_continue and self._transport is not None:
            data = self._http.send(h11.InformationalResponse(status_code=100, headers=[]))
            self._transport.write(data or b"")

    def _start(self, request: HttpRequest) -> None:
        self._connections.idle.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        self._task = self._loop.create_task(self._answer(request))

    # Answering

    async def _answer(self, request: HttpRequest) -> None:
        connections = self._connections
        counts = request.path not in OPEN_PATHS
        connections.busy += counts
        try:
            if counts and connections.busy > BUSY_MAX:
                raise RefusedError(503, "too many requests at this moment")
            answer = await connections.ask(request)
        except RefusedError as refusal:
            answer = plain(refusal.status, refusal.text)
        except Exception:
            logger.exception("the page %s failed", request.path[:200])
            answer = plain(500)
        finally:
            connections.busy -= counts
        try:
            if isinstance(answer, Response):
                await self._respond(answer, bare=request.method == "HEAD")
            else:
                await self._stream(answer, bare=request.method == "HEAD")
        except ConnectionError:
            return  # the client is gone
        self._task = None
        self._give_back()
        self._go_on()

    async def _respond(self, response: Response, *, bare: bool) -> None:
        keeping = "public, max-age=31536000, immutable" if response.keep else "no-store"
        self._send_head(
            response.status,
            [("Content-Length", str(len(response.body))), ("Cache-Control", keeping), *response.headers],
            response.kind,
        )
        if not bare and response.body:
            self._send(h11.Data(data=response.body))
        self._send(h11.EndOfMessage())

    async def _stream(self, stream: Stream, *, bare: bool) -> None:
        connections = self._connections
        if connections.streams >= STREAMS_MAX:
            await self._respond(plain(503, f"{STREAMS_MAX} pages are open already"), bare=bare)
            return
        connections.streams += 1
        self._streaming = True
        try:
            self._send_head(200, [("Cache-Control", "no-store"), ("Connection", "close")], stream.kind)
            if not bare:
                await stream.feed(self)
        except* (RefusedError, ConnectionError):  # perhaps of one of its tasks
            pass
        except* Exception:
            logger.exception("a stream failed")
        finally:
            connections.streams -= 1
        self._send(h11.EndOfMessage())

    async def send(self, data: bytes) -> None:
        """For streams (`Outlet`)."""
        if self._transport is None:
            raise ConnectionError
        self._send(h11.Data(data=data))
        if self._writable is not None:
            await self._writable

    def _send_head(self, status: int, headers: list[tuple[str, str]], kind: str) -> None:
        self._send(
            h11.Response(
                status_code=status,
                reason=PHRASES[status].encode(),
                headers=[("Content-Type", kind), *headers, *HEADERS],
            )
        )

    def _send(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        if self._transport is None:
            raise ConnectionError
        data = self._http.send(event)
        if data:
            self._transport.write(data)

    def _go_on(self) -> None:
        """The response is sent: read the next request, unless one side wants to end."""
        transport = self._transport
        if transport is None:
            return
        self._be_patient()
        if self._last or self._http.our_state is not h11.DONE or not self._drained():
            self._last = True
            transport.close()
            return
        self._http.start_next_cycle()
        self._connections.idle[self] = None
        transport.resume_reading()
        self._read_next()

    def _drained(self) -> bool:
        """Whether the request has been read to its end; the body of one without a body is empty."""
        try:
            while self._http.their_state is h11.SEND_BODY:
                if self._http.next_event() is h11.NEED_DATA:
                    return False
        except h11.RemoteProtocolError:
            return False
        return self._http.their_state is h11.DONE

    def _refuse(self, status: int, text: str) -> None:
        """Answer what is no valid request, and close."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._last = True
        if self._task is not None:
            return  # the present response comes first
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = (text or PHRASES.get(status, "")).encode() + b"\n"
            headers = [("Content-Length", str(len(body))), ("Cache-Control", "no-store"), ("Connection", "close")]
            if status == 405:
                headers.append(("Allow", "GET, HEAD, POST"))
            try:
                self._send_head(status if status in PHRASES else 400, headers, TEXT)
                self._send(h11.Data(data=body))
            except (h11.LocalProtocolError, ConnectionError):
                pass
        transport.close()
