"""What people write: addresses, and places to begin."""

from __future__ import annotations

import pytest

from ixion.clients.address import Address, parse_address, parse_bootstrap
from ixion.clients.starts import EARLIEST, LATEST, Start, parse_start


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost", "localhost", 9092),
        ("127.0.0.1:19092", "127.0.0.1", 19092),
        ("[::1]:9093", "::1", 9093),
        ("[::1]", "::1", 9092),
        (" kafka.example:1 ", "kafka.example", 1),
        ("::1", "::1", 9092),
    ],
)
def test_an_address(text: str, host: str, port: int) -> None:
    assert parse_address(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", ":9092", "host:", "host:x", "host:0", "host:65536", "[::1", "[::1]9092", "h:²"])
def test_what_is_no_address_says_so(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address: write"):
        parse_address(text)


def test_an_address_is_written_as_it_is_read() -> None:
    for text in ("127.0.0.1:9092", "[::1]:9092"):
        assert str(parse_address(text)) == text


def test_several_addresses() -> None:
    assert parse_bootstrap("a:1, b:2,") == (Address("a", 1), Address("b", 2))
    assert parse_bootstrap(["a:1", "b:2"]) == (Address("a", 1), Address("b", 2))
    with pytest.raises(ValueError, match="the first argument is missing"):
        parse_bootstrap(" ")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start(EARLIEST)),
        ("Latest", Start(LATEST)),
        ("0", Start(offset=0)),
        ("120", Start(offset=120)),
        ("-10", Start(before_end=10)),
        ("@1767225600000", Start(1767225600000)),
        ("2026-01-01T00:00:00Z", Start(1767225600000)),
        ("2026-01-01T01:00+01:00", Start(1767225600000)),
    ],
)
def test_a_place_to_begin(text: str, start: Start) -> None:
    assert parse_start(text) == start


@pytest.mark.parametrize("text", ["", "-", "@", "yesterday", "1.5", "2026-13-01"])
def test_what_is_no_place_says_what_is(text: str) -> None:
    with pytest.raises(ValueError, match="use earliest, latest"):
        parse_start(text)
