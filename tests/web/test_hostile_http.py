"""Strangers at the port of a real broker: tricks with paths and lengths, connections that do nothing, slow heads."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from ixion.clients import Consumer, Producer
from ixion.testing import Broker

CLOSE = "Host: localhost\r\nConnection: close\r\n\r\n"
IDLE = 1_000

# What names a file or another view to a server that decodes twice, folds dots, or takes a backslash for a slash.
PATHS = (
    *("/static/..%2f..%2fapp.py", "/static/%2e%2e/app.py", "/static/%252e%252e%252fapp.py", "/static/....//app.py"),
    *("/static/..;/app.py", "/static/%5c..%5capp.py", "/static/page.css%00.js", "/static//etc/passwd", "/static/"),
    *("/static/%c0%ae%c0%ae/app.py", "/static/\x7f", "/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "/../etc/passwd"),
    *("/api/v1/../../metrics", "/api/v1/topics/../settings", "/api/v1/topics//", "/api//v1/topics", "/API/v1/topics"),
    *("/api/v1/topics/%00", "/api/v1/topics/%ff", "/api/v1/topics/" + "%41" * 2000, "/" + "a/" * 1500, "/%", "/%zz"),
    *("/topics/<script>", "/topics/%3Cscript%3E", "//evil.example/", "/\\evil.example", "/;x=1", "/?" + "a=b&" * 60),
    *("/api/v1/topics?q=%ff", "/api/v1/topics?limit=1e9", "/api/v1/topics?limit=%D9%A3", "/api/v1/topics?start=-1"),
)

# One request to us; two to a server in front of us that counts bytes in another way. The second must never be answered.
SECOND = "GET /api/v1/settings HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMUGGLED = (
    f"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rContent-Length: 0\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n{SECOND}",
    f"POST /api/v1/session/end HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    f"Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{SECOND}",
    f"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n{SECOND}",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n\r\n{SECOND}",
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(metrics=True) as running:
        yield running


def connect(broker: Broker) -> socket.socket:
    address = urlsplit(broker.metrics_url)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=60)


def talk(broker: Broker, sent: str) -> bytes:
    with connect(broker) as to:
        to.sendall(sent.encode("utf-8"))
        found = b""
        try:
            while part := to.recv(1 << 16):
                found += part
        except ConnectionError:
            pass  # cut off while we were still sending
        return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_no_path_leads_to_a_file_or_past_a_check(broker: Broker, path: str, accept: str) -> None:
    answer = talk(broker, f"GET {path} HTTP/1.1\r\nAccept: {accept}\r\n{CLOSE}")
    expected = {400, 404, 431}
    if path.startswith(("/?", "/api/v1/topics?start")):
        expected |= {200}
    assert status(answer) in expected, answer[:200]
    assert b"root:" not in answer
    assert b"from __future__" not in answer
    assert b"<script>" not in answer.lower()


@pytest.mark.parametrize("sent", SMUGGLED, ids=range(len(SMUGGLED)))
def test_what_follows_a_doubtful_request_is_not_answered(broker: Broker, sent: str) -> None:
    answer = talk(broker, sent)
    assert answer.count(b"HTTP/1.1 ") == 1, answer[:300]
    assert b"log.dirs" not in answer


def test_a_thousand_idle_connections_disturb_nobody(broker: Broker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4 * IDLE:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * IDLE, hard), hard))
    broker.create_topic("busy")
    idle = []
    consumer = Consumer(broker.bootstrap, group="readers", topics=["busy"], auto_offset_reset="earliest")
    with Producer(broker.bootstrap) as producer, consumer:
        got = 0
        for number in range(IDLE):
            each = connect(broker)
            if number % 3:
                each.sendall(b"GET / HTTP/1.1\r\nHo"[: number % 18])  # the head never ends
            idle.append(each)
            if number % 50 == 0:
                producer.send("busy", b"x")
                producer.flush()
                assert status(talk(broker, f"GET /healthz HTTP/1.1\r\n{CLOSE}")) == 200
        streams = [connect(broker) for _ in range(64)]
        for each in streams:
            each.sendall(b"GET /api/v1/wheel/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert each.recv(12) == b"HTTP/1.1 200"
        assert status(talk(broker, f"GET /healthz HTTP/1.1\r\n{CLOSE}")) == 200
        assert status(talk(broker, f"GET /api/v1/overview HTTP/1.1\r\n{CLOSE}")) == 200
        while got < IDLE // 50:
            got += len(consumer.poll(1))
    for each in (*idle, *streams):
        each.close()
