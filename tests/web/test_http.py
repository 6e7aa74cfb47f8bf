"""HTTP over a socket: what is answered, what is refused, what is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ixion.broker.web import http
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import Answer, Ask, Outlet, Stream, plain
from ixion.broker.web.routes import Routes
from ixion.broker.web.server import WebServer


async def hello(request: HttpRequest) -> Answer:
    return plain(200, request.at.get("name", "hello"))


async def echo(request: HttpRequest) -> Answer:
    return plain(200, f"{len(request.body)} {request.body[:20].decode('latin-1')} {request.address}")


async def broken(request: HttpRequest) -> Answer:
    raise ValueError("a bug")


async def ticks(request: HttpRequest) -> Answer:
    async def feed(outlet: Outlet) -> None:
        await outlet.send(b"data: 1\n\n")
        await asyncio.Event().wait()

    return Stream(feed)


async def forever(request: HttpRequest) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


def routes() -> Ask:
    made = Routes()
    made.add("/api/v1/echo", echo, "POST")
    for path in ("/", "/by/{name}", "/healthz"):
        made.add(path, hello)
    for name, page in {"broken": broken, "ticks": ticks, "forever": forever}.items():
        made.add(f"/{name}", page)
    return made.ask


def with_server(use: Callable[[int], Awaitable[None]]) -> None:
    async def run() -> None:
        server = WebServer("127.0.0.1", 0)
        await server.start(routes)
        try:
            async with asyncio.timeout(30):
                await use(server.port)
        finally:
            server.close()

    asyncio.run(run())


async def talk(port: int, sent: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    return answer


CLOSE = b"Host: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /api/v1/echo HTTP/1.1\r\nContent-Type: application/json\r\n"
ONE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\n" + CLOSE, b"200 OK"),
        (b"GET /?a=b HTTP/1.0\r\nHost: 127.0.0.1:9644\r\n\r\n", b"200 OK"),
        (b"GET /by/a%2Fb HTTP/1.1\r\n" + CLOSE, b"200 OK"),
        (b"GET /by/%FF HTTP/1.1\r\n" + CLOSE, b"400 Bad Request"),
        (b"GET /by/../healthz HTTP/1.1\r\n" + CLOSE, b"404 Not Found"),
        (b"GET //healthz HTTP/1.1\r\n" + CLOSE, b"404 Not Found"),
        (b"GET /nothing HTTP/1.1\r\n" + CLOSE, b"404 Not Found"),
        (b"GET http://localhost/ HTTP/1.1\r\n" + CLOSE, b"400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", b"405 Method Not Allowed"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", b"413 Content Too Large"),
        (POST + b"Content-Length: 2\r\n" + CLOSE + b"{}", b"200 OK"),
        (POST + b"Content-Length: 0\r\n" + CLOSE, b"200 OK"),
        (POST + CLOSE, b"411 Length Required"),
        (POST + b"Transfer-Encoding: chunked\r\n" + CLOSE + b"2\r\n{}\r\n0\r\n\r\n", b"411 Length Required"),
        (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" + CLOSE + b"{}", b"411 Length Required"),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n" + CLOSE + b"{}x", b"400 Bad Request"),
        (POST + b"Content-Length: +2\r\n" + CLOSE + b"{}", b"400 Bad Request"),
        (POST + b"Content-Length: -2\r\n" + CLOSE + b"{}", b"400 Bad Request"),
        (POST + b"Content-Length: 0x2\r\n" + CLOSE + b"{}", b"400 Bad Request"),
        (POST + b"Content-Length: 99999999\r\n" + CLOSE, b"413 Content Too Large"),
        (POST + b"Content-Length: 9999999999999999999\r\n" + CLOSE, b"413 Content Too Large"),
        (POST + b"Content-Length : 2\r\n" + CLOSE + b"{}", b"400 Bad Request"),
        (POST.replace(b"/api/v1/echo", b"/") + b"Content-Length: 2\r\n" + CLOSE + b"{}", b"405 Method Not Allowed"),
        (POST.replace(b"/echo", b"/none") + b"Content-Length: 2\r\n" + CLOSE + b"{}", b"404 Not Found"),
        (b"GET /api/v1/echo HTTP/1.1\r\n" + CLOSE, b"405 Method Not Allowed"),
        (b"PUT /api/v1/echo HTTP/1.1\r\nContent-Length: 2\r\n" + CLOSE + b"{}", b"405 Method Not Allowed"),
        (POST.replace(b"application/json", b"text/plain") + CLOSE, b"411 Length Required"),
        (
            POST.replace(b"application/json", b"text/plain") + b"Content-Length: 2\r\n" + CLOSE + b"{}",
            b"415 Unsupported Media Type",
        ),
        (POST + b"Origin: http://evil.example\r\nContent-Length: 2\r\n" + CLOSE + b"{}", b"403 Forbidden"),
        (
            POST + b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nContent-Length: 2\r\n" + CLOSE + b"{}",
            b"403 Forbidden",
        ),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"413 Content Too Large"),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n" + CLOSE, b"413 Content Too Large"),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + CLOSE, b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n" + CLOSE, b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n" + CLOSE, b"501 Not Implemented"),
        (b"GET / HTTP/1.1\r\n X: folded\r\n" + CLOSE, b"400 Bad Request"),
        (b"GET /\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/2\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request"),
        (b"\x16\x03\x01\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * http.HEAD_MAX, b"431 Request Header Fields Too Large"),
        (b"GET /broken HTTP/1.1\r\n" + CLOSE, b"500 Internal Server Error"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421 Misdirected Request"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: localhost.evil.example:80\r\n\r\n", b"421 Misdirected Request"),
        (b"GET / HTTP/1.1\r\nHost: [::1]:9644\r\nConnection: close\r\n\r\n", b"200 OK"),
        (b"GET / HTTP/1.1\r\nOrigin: http://evil.example\r\n" + CLOSE, b"403 Forbidden"),
        (b"GET / HTTP/1.1\r\nOrigin: null\r\n" + CLOSE, b"403 Forbidden"),
        (b"GET / HTTP/1.1\r\nOrigin: http://localhost\r\n" + CLOSE, b"200 OK"),
        (b"GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n" + CLOSE, b"403 Forbidden"),
        (b"GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n" + CLOSE, b"200 OK"),
    ],
)
def test_requests_and_their_responses(sent: bytes, status: bytes) -> None:
    async def use(port: int) -> None:
        answer = await talk(port, sent)
        assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head

    with_server(use)


def test_head_has_no_body() -> None:
    async def use(port: int) -> None:
        answer = await talk(port, b"HEAD / HTTP/1.1\r\n" + CLOSE)
        assert b"Content-Length: 6\r\n" in answer
        assert answer.endswith(b"\r\n\r\n")

    with_server(use)


def test_requests_on_one_connection_are_answered_in_their_order() -> None:
    async def use(port: int) -> None:
        nothing = ONE.replace(b"/ ", b"/nothing ", 1)
        answer = await talk(port, ONE + nothing + b"GET / HTTP/1.1\r\n" + CLOSE)
        assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]

    with_server(use)


def test_a_head_may_come_in_pieces() -> None:
    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in b"GET / HTTP/1.1\r\n" + CLOSE:
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await reader.read()).endswith(b"hello\n")
        writer.close()

    with_server(use)


def test_a_probe_is_answered_however_many_connections_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 4)

    async def use(port: int) -> None:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
        idle[-1][1].write(ONE)  # answered, and then as idle as the others
        assert (await idle[-1][0].readline()).startswith(b"HTTP/1.1 200")
        for _ in range(10):
            assert (await talk(port, b"GET /healthz HTTP/1.1\r\n" + CLOSE)).startswith(b"HTTP/1.1 200")
        for _, writer in idle:
            writer.close()

    with_server(use)


def test_streams_are_bounded_and_keep_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 4)
    monkeypatch.setattr(http, "STREAMS_MAX", 2)

    async def use(port: int) -> None:
        streams = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ONE.replace(b"/ ", b"/ticks ", 1))
            await reader.readuntil(b"data: 1\n\n")
            streams.append(writer)
        assert (await talk(port, b"GET /ticks HTTP/1.1\r\n" + CLOSE)).startswith(b"HTTP/1.1 503")
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
        assert (await talk(port, b"GET /healthz HTTP/1.1\r\n" + CLOSE)).startswith(b"HTTP/1.1 200")
        assert not any(writer.transport.is_closing() for writer in streams)
        for writer in (*streams, *(each[1] for each in others)):
            writer.close()

    with_server(use)


def test_a_client_that_has_closed_its_half_gets_its_response() -> None:
    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ONE)
        writer.write_eof()
        assert (await reader.read()).endswith(b"hello\n")
        writer.close()

    with_server(use)


def test_no_page_can_be_framed_or_run_the_script_of_others() -> None:
    async def use(port: int) -> None:
        answer = await talk(port, b"GET / HTTP/1.1\r\n" + CLOSE)
        assert b"frame-ancestors 'none'" in answer
        assert b"default-src 'none'; script-src 'self'" in answer
        assert b"X-Content-Type-Options: nosniff" in answer

    with_server(use)


def test_a_silent_client_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PATIENCE_S", 0)

    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass  # cut off in the hard way
        writer.close()

    with_server(use)


def test_a_probe_is_answered_while_all_pages_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BUSY_MAX", 2)
    monkeypatch.setattr(http, "HALF_CLOSED_S", 0)

    async def use(port: int) -> None:
        waiting = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ONE.replace(b"/ ", b"/forever ", 1))
            waiting.append((reader, writer))
        while not (await talk(port, b"GET / HTTP/1.1\r\n" + CLOSE)).startswith(b"HTTP/1.1 503"):
            pass
        assert (await talk(port, b"GET /healthz HTTP/1.1\r\n" + CLOSE)).startswith(b"HTTP/1.1 200")
        for _, writer in waiting:
            writer.close()
        while not (await talk(port, b"GET / HTTP/1.1\r\n" + CLOSE)).startswith(b"HTTP/1.1 200"):
            pass  # those that are gone wait no longer

    with_server(use)


def test_a_body_may_come_in_pieces_and_ends_where_it_was_announced() -> None:
    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in POST + b"Host: localhost\r\nContent-Length: 4\r\n\r\nabcdGET / HTTP/1.1\r\n" + CLOSE:
            writer.write(bytes([byte]))
            await writer.drain()
        answer = await reader.read()
        assert b"\r\n\r\n4 abcd 127.0.0.1\n" in answer
        assert answer.endswith(b"hello\n")  # the second request was not a part of the first
        writer.close()

    with_server(use)


def test_a_client_that_asks_before_it_sends_a_body_is_answered() -> None:
    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST + b"Expect: 100-continue\r\nContent-Length: 4\r\n" + CLOSE)
        assert await reader.readline() == b"HTTP/1.1 100 \r\n"
        writer.write(b"abcd")
        assert (await reader.read()).endswith(b"4 abcd 127.0.0.1\n")
        writer.close()

    with_server(use)


def test_all_bodies_together_are_bounded_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODIES_MAX", 5)

    async def use(port: int) -> None:
        _, slow = await asyncio.open_connection("127.0.0.1", port)
        slow.write(POST + b"Content-Length: 4\r\n" + CLOSE + b"a")
        small = POST + b"Content-Length: 2\r\n" + CLOSE + b"{}"
        while not (await talk(port, small)).startswith(b"HTTP/1.1 503"):
            pass
        assert (await talk(port, b"GET / HTTP/1.1\r\n" + CLOSE)).startswith(b"HTTP/1.1 200")
        slow.close()
        while not (await talk(port, small)).startswith(b"HTTP/1.1 200"):
            pass
        for _ in range(5):
            assert (await talk(port, small)).startswith(b"HTTP/1.1 200")

    with_server(use)


def test_a_body_that_does_not_come_is_waited_for_as_long_as_for_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PATIENCE_S", 0.01)

    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST + b"Content-Length: 4\r\n" + CLOSE + b"a")
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        writer.close()

    with_server(use)
