"""HTTP over a socket: what is answered, what is refused, what is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ixion.web import http
from ixion.web.response import Response, plain
from ixion.web.server import WebServer


async def hello() -> Response:
    return plain(200, "hello")


async def broken() -> Response:
    raise ValueError("a bug")


def with_server(use: Callable[[int], Awaitable[None]]) -> None:
    async def run() -> None:
        server = WebServer("127.0.0.1", 0)
        await server.start(lambda: {"/": hello, "/broken": broken})
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


CLOSE = b"Connection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + CLOSE, b"200 OK"),
        (b"GET /?a=b HTTP/1.0\r\n\r\n", b"200 OK"),
        (b"GET /nothing HTTP/1.1\r\n" + CLOSE, b"404 Not Found"),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405 Method Not Allowed"),
        (b"GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"413 Content Too Large"),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"413 Content Too Large"),
        (b"GET /\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/2\r\n\r\n", b"400 Bad Request"),
        (b"\x16\x03\x01\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * http.HEAD_MAX, b"431 Request Header Fields Too Large"),
        (b"GET /broken HTTP/1.1\r\n" + CLOSE, b"500 Internal Server Error"),
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
        one = b"GET / HTTP/1.1\r\n\r\n"
        answer = await talk(port, one + b"GET /nothing HTTP/1.1\r\n\r\n" + one[:-4] + b"\r\n" + CLOSE)
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


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 1)

    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert (await talk(port, b"")).startswith(b"HTTP/1.1 503")
        writer.close()

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
