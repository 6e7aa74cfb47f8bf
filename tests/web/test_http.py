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
