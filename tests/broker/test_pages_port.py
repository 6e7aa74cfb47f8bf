"""The port of the pages: whose fault it is if it cannot be had."""

from __future__ import annotations

import socket

import pytest

from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.pages import PagesAt, bind_pages
from ixion.broker.web.server import WebServer


def test_taken_by_another_is_a_reason_or_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = PagesAt(port=taken.getsockname()[1])
        said = bind_pages(at, False)
        assert isinstance(said, str)
        assert str(at.port) in said
        with pytest.raises(StartupError, match="--metrics-port off"):
            bind_pages(at._replace(required=True), False)


def test_free() -> None:
    found = bind_pages(PagesAt(port=0), False)
    assert isinstance(found, WebServer)
    assert found.url == f"http://127.0.0.1:{found.port}"
    found.close()


def test_other_machines_are_kept_out() -> None:
    with pytest.raises(StartupError, match="--allow-remote"):
        bind_pages(PagesAt(host="::", port=0), False)
