"""Records that a schema registry knows are shown as JSON; what cannot be read stays bytes."""

from __future__ import annotations

import json
import struct
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.broker.web.console.api import registry
from ixion.broker.web.console.api.avro import AvroError, decode
from ixion.broker.web.console.api.registry import Registry
from ixion.clients import Producer
from ixion.testing import Broker
from tests.web.posts import get
from tests.web.test_console import page

ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "who", "type": ["null", "string"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "before", "type": "State"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "key", "type": {"type": "fixed", "name": "Key", "size": 2}},
        {"name": "share", "type": "double"},
        {"name": "ok", "type": "boolean"},
    ],
}
SHOWN = {
    "n": -7,
    "who": "Zoë",
    "state": "PAID",
    "before": "NEW",
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "price": "12.34",
    "day": "1970-01-11",
    "at": "1970-01-01T00:00:01.500000+00:00",
    "key": "AP8=",
    "share": 0.5,
    "ok": True,
}


def long(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def text(value: str) -> bytes:
    data = value.encode()
    return long(len(data)) + data


ENCODED = b"".join(
    (
        *(long(-7), long(1), text("Zoë"), long(1), long(0)),
        *(long(-2), long(4), text("a"), text("b"), long(0)),  # a block with its size
        *(long(1), text("x"), long(1), long(0)),
        *(long(2), (1234).to_bytes(2, "big"), long(10), long(1500), b"\x00\xff", struct.pack("<d", 0.5), b"\x01"),
    )
)


def test_every_type_is_read() -> None:
    assert decode(ORDER, ENCODED) == SHOWN
    assert decode("float", struct.pack("<f", float("nan"))) == "nan"
    assert decode({"type": "int", "logicalType": "date"}, long((1 << 31) - 1)) == (1 << 31) - 1  # after the year 9999


@pytest.mark.parametrize("size", range(len(ENCODED)))
def test_bytes_that_end_too_early_are_refused(size: int) -> None:
    with pytest.raises(AvroError):
        decode(ORDER, ENCODED[:size])


MANY_NAMES = {"type": "record", "name": "R", "fields": [{"name": "x" * 1_000, "type": "int"}]}
DEEP: dict[str, Any] = {"type": "record", "name": "D", "fields": [{"name": "d", "type": "D"}]}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (DEEP, b""),
        ({"type": "array", "items": "null"}, long(1 << 40)),
        ({"type": "array", "items": "null"}, (long(19_000) + b"") * 2 + long(0)),
        ({"type": "array", "items": {"type": "array", "items": "null"}}, long(10) + (long(9_000) + long(0)) * 10),
        ("string", long(-1)),
        ("long", b"\xff" * 11),
        (["null", "int"], long(2)),
        ("nothing", b""),
        ({"type": "record", "name": "x"}, b""),
        ({"type": "bytes", "logicalType": "decimal", "scale": 1 << 70}, long(1) + b"\x01"),
        ({"type": "fixed", "name": "x", "size": -1}, b""),
        ("[", b""),
        (7, b""),
        (
            {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["x" * 1_000]}},
            long(9_000) + bytes(9_001),
        ),
        ({"type": "array", "items": MANY_NAMES}, long(5_000) + bytes(5_001)),
        ("null", b"x"),
    ],
)
def test_what_a_stranger_may_send_is_refused(schema: Any, data: bytes) -> None:
    with pytest.raises(AvroError):
        decode(schema, data)


@pytest.mark.parametrize("kind", ["bytes", {"type": "fixed", "name": "F", "size": 64}])
def test_decimals_are_exact_up_to_a_length(kind: Any) -> None:
    schema = {"type": "bytes"} if kind == "bytes" else dict(kind)
    schema |= {"logicalType": "decimal", "scale": 3}
    found = (1 << 510) + 7
    start = long(64) if kind == "bytes" else b""
    text = decode(schema, start + found.to_bytes(64, "big", signed=True))
    assert text == f"{found // 1000}.{found % 1000:03}"


def test_a_decimal_that_is_too_long_to_read_stays_bytes() -> None:
    """One of 250 KB held up the event loop for 5 s."""
    data = b"\x7f" * 65
    found = decode({"type": "bytes", "logicalType": "decimal", "scale": 3}, long(65) + data)
    assert found == b64encode(data).decode()


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        json.dumps(decode(ORDER, data), allow_nan=False)
    except AvroError:
        pass


class Schemas(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []
    found: ClassVar[dict[str, dict[str, str]]] = {
        "/sr/schemas/ids/7": {"schema": json.dumps(ORDER)},
        "/sr/schemas/ids/8": {"schema": "{}", "schemaType": "JSON"},
        "/sr/schemas/ids/9": {"schema": "syntax", "schemaType": "PROTOBUF"},
        "/sr/schemas/ids/10": {"schema": "{"},
    }

    def do_GET(self) -> None:
        self.asked.append(self.path)
        found = self.found.get(self.path)
        body = json.dumps(found or {"error_code": 40403}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Schemas)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/sr"
    server.shutdown()
    thread.join()
    server.server_close()


def framed(number: int, data: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + data


def test_records_are_shown_by_their_schemas(url: str) -> None:
    with Broker({"web.schema.registry.url": url}, metrics=True) as broker:
        broker.create_topic("orders")
        with Producer(broker.bootstrap) as producer:
            for value in (
                framed(7, ENCODED),
                framed(8, b'{"a": 1}'),
                framed(9, b"\x08\x01"),
                framed(7, ENCODED[:-1]),
                framed(11, b"x"),
                b"plain",
            ):
                producer.send("orders", value, key=framed(8, b'"k"'))
            producer.flush()
        rows = get(broker, "/topics/orders/records?partition=0&offset=0")[1]["records"]
        first, second, proto, torn, unknown, plain = (row["value"] for row in rows)
        assert (json.loads(first["decoded"]), first["schema"], first["kind"]) == (SHOWN, "Avro 7 shop.Order", "bytes")
        assert (second["decoded"], second["schema"]) == ('{"a": 1}', "JSON Schema 8")
        assert (proto["schema"], "decoded" in proto) == ("Protobuf 9", False)
        assert (torn["schema"], "decoded" in torn) == ("Avro 7 shop.Order", False)
        assert "schema" not in unknown
        assert "schema" not in plain
        assert rows[0]["key"]["decoded"] == '"k"'
        assert "Zoë" in page(broker, "/topics/orders/records")
        assert "Avro 7 shop.Order" in page(broker, "/topics/orders/0/0")
        assert Schemas.asked.count("/sr/schemas/ids/7") == 1
        assert Schemas.asked.count("/sr/schemas/ids/11") == 1  # also that there is none


def test_a_registry_is_asked_for_a_bounded_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Registry(url)
    assert known.decoded(framed(10, b"")) is None  # no schema that can be read
    monkeypatch.setattr(registry, "WAIT_S", 0.0)
    before = len(Schemas.asked)
    assert known.decoded(framed(7, ENCODED)) is None
    assert len(Schemas.asked) == before
    monkeypatch.setattr(registry, "WAIT_S", 10.0)
    monkeypatch.setattr(registry, "KEPT", 3)
    for number in range(100, 110):
        assert known.decoded(framed(number, b"")) is None
    assert len(known._known) == 3
    assert known.decoded(framed(7, ENCODED)) is not None


def test_it_is_a_url_of_http() -> None:
    for wrong in ("ftp://x", "x", "http://", "http://user:secret@x"):
        with pytest.raises(ValueError, match="http"):
            Registry(wrong)
