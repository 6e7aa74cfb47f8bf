"""A redirect to another place does not get the secret of a request."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ixion.pipelines.secret_requests import open_url, origin_of


@contextmanager
def server(location: str = "") -> Iterator[tuple[str, list[str | None]]]:
    """Answers with its headers, or redirects. Remembers the secrets that it got."""
    got: list[str | None] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.headers["Authorization"])
            if location and self.path == "/":
                self.send_response(302)
                self.send_header("Location", location)
                self.end_headers()
            else:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps("fine").encode())

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_address[1]}", got
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def ask(url: str) -> None:
    request = urllib.request.Request(url, headers={"Authorization": "Bearer secret"})
    with open_url(request, 10) as answer:
        assert json.load(answer) == "fine"


def test_another_place_gets_no_secret() -> None:
    with server() as (elsewhere, stolen), server(f"{elsewhere}/x") as (here, got):
        ask(f"{here}/")
    assert (got, stolen) == (["Bearer secret"], [None])


def test_the_same_server_gets_it() -> None:
    with server("/moved") as (here, got):
        ask(f"{here}/")
    assert got == ["Bearer secret"] * 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a/x", "https://A:443/y", True),
        ("https://a/x", "http://a/x", False),
        ("http://a/x", "http://a:8080/x", False),
        ("http://a/x", "http://b/x", False),
    ],
)
def test_origins(one: str, other: str, same: bool) -> None:
    assert (origin_of(one) == origin_of(other)) is same
