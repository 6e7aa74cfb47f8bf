"""Avro records with the ids of their schemas, which a registry has: over HTTP, or a folder."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from devtools.parts import need_module
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.registry import HttpRegistry, Registered, open_registry
from ixion.pipelines.spec.registry import RegistrySpec
from tests.pipelines.support import Lab, column

OLD = {"type": "record", "name": "o", "fields": [{"name": "n", "type": "int"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "s", "type": "string", "default": "none"}]}


def framed(number: int, *parts: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + b"".join(parts)


def write(folder: Path, subject: str, version: int, number: int, schema: dict[str, Any], kind: str = "AVRO") -> None:
    folder.joinpath(subject).mkdir(parents=True, exist_ok=True)
    value = {"id": number, "schemaType": kind, "schema": json.dumps(schema)}
    folder.joinpath(subject, f"{version}.json").write_text(json.dumps(value))


def text(url: str = "registry", more: str = "") -> str:
    sink = '[[sinks]]\ntype = "parquet"\npath = "out"\n'
    return f'[format]\ntype = "avro"\n[format.registry]\nurl = "{url}"\n{more}\n{sink}'


def test_each_record_is_read_with_its_own_schema(lab: Lab) -> None:
    folder, subject = lab.folder / "registry", f"{lab.topic}-value"
    write(folder, subject, 1, 7, OLD)
    write(folder, subject, 2, 9, NEW)
    lab.send(framed(7, b"\x02"), framed(9, b"\x04", b"\x02x"), b"plain", framed(9, b"\xff"))
    figures = lab.run(text())
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (4, 2, 2)
    assert sorted((row["n"], row["s"]) for row in lab.rows()) == [(1, "none"), (2, "x")]
    reasons = {row["value"]: row["reason"] for row in lab.rows("out_quarantine")}
    assert reasons == {
        b"plain": "no header of a schema registry",
        framed(9, b"\xff"): "not a record of the Avro schema",
    }
    write(folder, "another-subject", 1, 12, OLD)  # an id that is met only now
    lab.send(framed(12, b"\x06"), framed(13, b"\x06"))
    figures = lab.run(text())
    assert (figures.rows_out, figures.quarantined) == (1, 1)
    assert column(lab.rows(), "n") == [1, 2, 3]
    assert "not in the schema registry: id 13" in column(lab.rows("out_quarantine"), "reason")


def test_avro_schemas_refer_to_others(tmp_path: Path) -> None:
    """The definition of a type takes the place of its first use; a definition may refer to others."""
    need_module("pyspark")
    from ixion.pipelines.formats.avro_references import whole_schema

    def entry(number: int, schema: Any, *references: tuple[str, str]) -> None:
        write(tmp_path, f"s{number}", 1, number, schema)
        path = tmp_path / f"s{number}/1.json"
        listed = [{"name": name, "subject": subject, "version": 1} for name, subject in references]
        path.write_text(json.dumps({**json.loads(path.read_text()), "references": listed}))

    city = {"type": "enum", "name": "shop.City", "symbols": ["Graz"]}
    place = {"type": "record", "name": "Place", "namespace": "shop", "fields": [{"name": "city", "type": "City"}]}
    fields = [
        {"name": "to", "type": ["null", "shop.Place"]},
        {"name": "by", "type": {"type": "array", "items": "Place"}},
    ]
    order = {"type": "record", "name": "shop.Order", "fields": fields}
    entry(1, city)
    entry(2, place, ("shop.City", "s1"))
    entry(3, order, ("shop.Place", "s2"))
    entry(4, order, ("shop.Place", "gone"))
    registry = open_registry(RegistrySpec(url=str(tmp_path)))
    found = registry.by_id(3)
    assert found is not None
    whole = json.loads(whole_schema(registry, found))
    assert whole["fields"][0]["type"] == ["null", {**place, "fields": [{"name": "city", "type": city}]}]
    assert whole["fields"][1]["type"]["items"] == "Place"
    lost = registry.by_id(4)
    assert lost is not None
    with pytest.raises(PipelineError, match=r"no version 1 of subject gone, which defines shop\.Place"):
        whole_schema(registry, lost)


def test_an_avro_schema_that_many_refer_to_is_asked_for_once() -> None:
    """Two types on each level, each of which refers to both of the next: 2^30 ways lead to the last ones."""
    need_module("pyspark")
    from ixion.pipelines.formats.avro_references import whole_schema

    asked: list[str] = []

    class Levels:
        def version(self, subject: str, number: int) -> Registered:
            asked.append(subject)
            level = int(subject[1:])
            below = tuple((f"{side}{level + 1}", f"{side}{level + 1}", 1) for side in "ab") if level < 30 else ()
            fields = [{"name": name, "type": name} for name, _, _ in below]
            schema = json.dumps({"type": "record", "name": subject, "fields": fields})
            return Registered(id=number, version=1, schema=schema, kind="AVRO", references=below)

    registry: Any = Levels()
    whole = whole_schema(registry, registry.version("a0", 1))
    assert sorted(asked) == sorted(["a0", *(f"{side}{level}" for level in range(1, 31) for side in "ab")])
    assert whole.count('"record"') == len(asked)


def test_a_registry_gives_the_columns_of_json(lab: Lab) -> None:
    properties = {"n": {"type": "integer", "connect.type": "int32"}, "s": {"type": ["null", "string"]}}
    write(lab.folder / "registry", f"{lab.topic}-value", 1, 7, {"type": "object", "properties": properties}, "JSON")
    lab.send(framed(7, b'{"n": 1, "s": "x"}'), b'{"n": 2}', framed(7, b'{"n": "two"}'), framed(7), None)
    figures = lab.run(text().replace("avro", "json"))
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (5, 2, 3)
    assert [(row["n"], row["s"]) for row in lab.rows() if row["n"]] == [(1, "x")]
    reasons = {row["value"]: row["reason"] for row in lab.rows("out_quarantine")}
    assert reasons[b'{"n": 2}'] == "no header of a schema registry"
    assert len(reasons) == 3  # as they came, with the header: a replay reads them again


def test_what_is_wrong_with_a_registry_is_said(lab: Lab) -> None:
    with pytest.raises(PipelineError, match="there is no folder"):
        lab.pipeline(text()).check(lab.spark)
    write(lab.folder / "registry", "other", 1, 7, OLD)
    with pytest.raises(PipelineError, match=f"the schema registry has no subject {lab.topic}-value"):
        lab.pipeline(text()).check(lab.spark)
    write(lab.folder / "registry", "json", 1, 8, {}, "JSON")
    with pytest.raises(PipelineError, match="the schemas of subject json are JSON, and the format is avro"):
        lab.pipeline(text(more='subject = "json"')).check(lab.spark)
    write(lab.folder / "registry", "proto", 1, 9, {}, "PROTOBUF")
    with pytest.raises(PipelineError, match="of subject proto are PROTOBUF"):
        lab.pipeline(text(more='subject = "proto"')).check(lab.spark)
    with pytest.raises(PipelineError, match="cannot be reached") as caught:
        lab.pipeline(text("http://127.0.0.1:1")).check(lab.spark)
    assert caught.value.retry


@pytest.fixture
def served() -> Iterator[tuple[str, list[str]]]:
    """A registry with the subject `a b` and schema 7; only the user ada may ask."""
    asked: list[str] = []
    answers: dict[str, Any] = {
        "/subjects/a%20b/versions": [1],
        "/subjects/a%20b/versions/1": {"subject": "a b", "version": 1, "id": 7, "schema": json.dumps(OLD)},
        "/schemas/ids/7": {"schema": json.dumps(OLD)},
        "/subjects/other/versions": {"page": "login"},
        "/schemas/ids/9": {"page": "login"},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            let_in = self.headers["Authorization"] == "Basic " + base64.b64encode(b"ada:secret").decode()
            self.send_response(401 if not let_in else 200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, {})).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_confluents_api(served: tuple[str, list[str]]) -> None:
    url, asked = served
    registry = open_registry(RegistrySpec(url=url, user="ada", password="secret"))
    assert isinstance(registry, HttpRegistry)
    (version,) = registry.versions("a b")
    assert (version.id, version.kind, json.loads(version.schema)) == (7, "AVRO", OLD)
    found = registry.by_id(7)
    assert found is not None
    assert found.schema == json.dumps(OLD)
    assert registry.by_id(8) is None
    assert registry.versions("nobody") == []
    assert asked[0] == "/subjects/a%20b/versions"
    for other in (lambda: registry.versions("other"), lambda: registry.by_id(9)):
        with pytest.raises(PipelineError, match="does not answer as a schema registry"):
            other()
    with pytest.raises(PipelineError, match="answered 401") as caught:
        open_registry(RegistrySpec(url=url)).versions("a b")
    assert "user and password" in caught.value.hint
    assert not caught.value.retry
