"""Protobuf records: by a schema registry, with all that its header says, and by a file without one."""

from __future__ import annotations

import datetime
import json
import pickle
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.protobuf import Decoder, parse_protobuf
from ixion.pipelines.formats.protobuf_files import as_bytes, compile_proto
from ixion.pipelines.spec.format import FormatSpec
from tests.pipelines.support import Lab, column

pytest.importorskip("google.protobuf", reason="the extra ixion[protobuf] is not installed")
pytest.importorskip("grpc_tools", reason="the extra ixion[protobuf] is not installed")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OLD = 'syntax = "proto3"; package shop; message Order { int32 n = 1; }'
NEW = OLD.replace("}", "optional string s = 2; } message Other { int32 n = 1; }")
ALL = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  enum State { OPEN = 0; PAID = 1; }
  message Item { string sku = 1; uint32 count = 2; }
  uint64 id = 1;
  State state = 2;
  repeated Item items = 3;
  map<string, Item> by_name = 4;
  google.protobuf.Timestamp at = 5;
  google.protobuf.StringValue note = 6;
  bytes raw = 7;
  oneof paid_by { string card = 8; sint64 cash = 9; }
  double amount = 10;
}
"""


def framed(number: int, body: bytes, indexes: bytes = b"\0") -> bytes:
    return b"\0" + number.to_bytes(4, "big") + indexes + body


def order(n: int, s: str | None = None) -> bytes:
    """Field 1 is a varint, field 2 a text."""
    return bytes([8, n]) + (b"" if s is None else bytes([18, len(s)]) + s.encode())


def decoder(text: str, message: str | None = None, writers: dict[int, str] | None = None) -> Decoder:
    known = {number: as_bytes(compile_proto(one)) for number, one in (writers or {}).items()}
    return Decoder(as_bytes(compile_proto(text)), message, known, framed=writers is not None)


def write(folder: Path, subject: str, version: int, number: int, schema: str, references: Any = ()) -> None:
    folder.joinpath(subject).mkdir(parents=True, exist_ok=True)
    value = {"id": number, "schemaType": "PROTOBUF", "schema": schema, "references": references}
    folder.joinpath(subject, f"{version}.json").write_text(json.dumps(value))


def text(more: str) -> str:
    return f'[format]\ntype = "protobuf"\n{more}\n[[sinks]]\ntype = "parquet"\npath = "out"\n'


def registry(url: str = "registry") -> str:
    return text(f'[format.registry]\nurl = "{url}"')


def test_every_type_becomes_a_column() -> None:
    read = decoder(ALL)
    item = b"\x0a\x01a\x10\x02"
    body = b"".join(
        (
            b"\x08" + b"\xff" * 9 + b"\x01",  # the largest uint64
            b"\x10\x01",
            b"\x1a\x05" + item,
            b"\x22\x0a\x0a\x01k\x12\x05" + item,
            b"\x2a\x05\x08\x3c\x10\xd0\x0f",  # 60 s and 2,000 ns
            b"\x48\x03",
        )
    )
    values = dict(zip(read.columns.names, read(body) or (), strict=False))
    assert values["id"] == Decimal(2**64 - 1)
    assert values["state"] == "PAID"
    assert values["items"] == [("a", 2)]
    assert values["by_name"] == {"k": ("a", 2)}
    assert values["cash"] == -2
    assert values["card"] is None
    assert values["note"] is None
    assert values["amount"] == 0.0
    assert values["raw"] == b""
    assert values["at"] == datetime.datetime(1970, 1, 1, 0, 1, 0, 2, datetime.UTC)
    types = {field.name: field.dataType.simpleString() for field in read.columns.fields}
    assert types["items"] == "array<struct<sku:string,count:bigint>>"
    assert types["id"] == "decimal(20,0)"
    assert types["note"] == "string"
    assert read(b"\x10\x05")[1] == "5"  # type: ignore[index]  # a value without a name


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x08", "not a record of message shop.Order"),
        (b"\x12\x01\xff", "not a record of message shop.Order"),  # no UTF-8
        (b"\x08\x01\x48\x01", "fields that shop.Order does not have: 9"),
        (b"\x0a\x01a", "fields that shop.Order does not have: 1"),  # a text where the schema has a number
    ],
)
def test_a_bad_record_has_its_reason(body: bytes, reason: str) -> None:
    assert decoder(NEW)(body) == (None, None, reason)


def test_fields_that_an_inner_message_does_not_have_are_found() -> None:
    fields = "B b = 1; repeated B more = 2; map<string, B> named = 3;"
    inner = f'syntax = "proto3"; message A {{ {fields} }} message B {{ int32 n = 1; }}'
    for body in (b"\x0a\x02\x10\x01", b"\x12\x02\x10\x01", b"\x1a\x04\x12\x02\x10\x01"):
        assert decoder(inner)(body)[-1] == "fields that B does not have: 2"  # type: ignore[index]


def test_the_header_tells_version_and_message() -> None:
    read = pickle.loads(pickle.dumps(decoder(NEW, writers={7: OLD, 9: NEW})))
    assert read(framed(7, order(1))) == (1, None, None)
    assert read(framed(9, order(2, "x"))) == (2, "x", None)
    assert read(framed(9, order(3), b"\x02\x00")) == (3, None, None)  # the long way to say 0
    assert read(framed(9, order(4), b"\x02\x02"))[2] == "a record of message shop.Other, not of shop.Order"
    assert "at [5]" in read(framed(9, order(4), b"\x02\x0a"))[2]
    assert read(framed(7, order(1, "x")))[2] == "fields that shop.Order does not have: 2"
    assert read(b"\0\0\0\0\x07")[2] == "no list of message indexes behind the header"
    assert read(framed(7, b"", b"\x01"))[2] == "no list of message indexes behind the header"
    assert read(order(1))[2] == "no header of a schema registry"
    assert read(None) is None


def test_a_field_that_has_another_type_by_now_is_not_lost_in_silence() -> None:
    newer = OLD.replace("int32 n", "string n")
    read = decoder(newer, writers={7: OLD, 9: newer})
    assert read(framed(7, order(1))) == (None, "fields of another type in the newest schema: 1")


def test_inner_messages_have_places_too() -> None:
    fields = "map<string, int32> m = 1; message B { int32 n = 1; } message C { int32 n = 1; }"
    nested = f'syntax = "proto3"; message A {{ {fields} }}'
    read = decoder(nested, "A.C", writers={7: nested})
    assert read(framed(7, order(1), b"\x04\x00\x02")) == (1, None)
    assert read(framed(7, order(1), b"\x04\x00\x00"))[1] == "a record of message A.B, not of A.C"  # type: ignore[index]


def test_records_of_a_registry_become_rows(lab: Lab) -> None:
    folder, subject = lab.folder / "registry", f"{lab.topic}-value"
    write(folder, subject, 1, 7, OLD)
    write(folder, subject, 2, 9, NEW)
    lab.send(framed(7, order(1)), framed(9, order(2, "x")), b"plain", framed(9, b"\xff"), None)
    figures = lab.run(registry())
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (5, 3, 2)
    assert sorted((row["n"], row["s"]) for row in lab.rows() if row["n"]) == [(1, None), (2, "x")]
    reasons = {row["value"]: row["reason"] for row in lab.rows("out_quarantine")}
    assert reasons == {
        b"plain": "no header of a schema registry",
        framed(9, b"\xff"): "not a record of message shop.Order",
    }
    write(folder, "another-subject", 1, 12, OLD)  # an id that is met only now
    lab.send(framed(12, order(3)), framed(13, order(4)))
    figures = lab.run(registry())
    assert (figures.rows_out, figures.quarantined) == (1, 1)
    assert "not in the schema registry: id 13" in column(lab.rows("out_quarantine"), "reason")


@pytest.fixture
def served(lab: Lab) -> Iterator[str]:
    """A registry over HTTP whose schema imports another one."""
    subject = f"/subjects/{lab.topic}-value/versions"
    main = 'syntax = "proto3"; import "parts/item.proto"; message Order { parts.Item item = 1; }'
    item = 'syntax = "proto3"; package parts; message Item { string sku = 1; }'
    reference = {"name": "parts/item.proto", "subject": "item", "version": 3}
    answers: dict[str, Any] = {
        subject: [1],
        f"{subject}/1": {"version": 1, "id": 7, "schemaType": "PROTOBUF", "schema": main, "references": [reference]},
        "/subjects/item/versions/3": {"version": 3, "id": 5, "schemaType": "PROTOBUF", "schema": item},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, {})).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_schemas_that_import_others_come_from_a_registry_over_http(lab: Lab, served: str) -> None:
    lab.send(framed(7, b"\x0a\x03\x0a\x01a"))
    assert lab.run(registry(served)).rows_out == 1
    assert lab.rows() == [{"item": {"sku": "a"}}]


def test_records_without_a_header_are_read_by_a_file(lab: Lab) -> None:
    lab.folder.joinpath("order.proto").write_text(NEW)
    lab.send(order(1, "x"), b"\xff")
    figures = lab.run(text('schema_file = "order.proto"\nmessage = "shop.Order"'))
    assert (figures.rows_out, figures.quarantined) == (1, 1)
    lab.folder.joinpath("order.desc").write_bytes(as_bytes(compile_proto(NEW)))
    lab.send(order(2))
    assert lab.run(text('schema_file = "order.desc"')).rows_out == 1
    assert sorted((row["n"], row["s"]) for row in lab.rows()) == [(1, "x"), (2, None)]


@pytest.mark.parametrize(
    ("content", "message", "words"),
    [
        ('syntax = "proto3";\nmessage A { Strin n = 1; }', None, 'line 2: "Strin" is not defined'),
        (NEW, "shop.Oder", "it has no message shop.Oder; those at its top are shop.Order, shop.Other"),
        ('syntax = "proto3"; message A { A a = 1; }', None, "message A contains itself"),
        ('syntax = "proto3";', None, "it has no message"),
        ('syntax = "proto3"; import "b.proto"; message A { }', None, "b.proto"),
    ],
)
def test_what_is_wrong_with_a_schema_is_said(content: str, message: str | None, words: str) -> None:
    spec = FormatSpec(type="protobuf", schema=content, message=message)
    with pytest.raises(PipelineError, match="the Protobuf schema cannot be used") as caught:
        parse_protobuf(cast("DataFrame", None), spec)  # it is refused before there is a plan
    assert words in str(caught.value)
