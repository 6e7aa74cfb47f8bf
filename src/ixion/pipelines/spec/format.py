"""The format of the records' values: `[format]`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ixion.pipelines.spec.registry import RegistrySpec, read_registry
from ixion.pipelines.spec.section import Section

DEBEZIUM: Final = "debezium"
DESCRIPTORS: Final = "descriptors:"  # before a descriptor set of Protobuf in base64
FORMATS: Final = ("json", "csv", "avro", "protobuf", "text", "bytes", DEBEZIUM)
_JSON: Final = ("strict", "key_case", "repeated_keys")  # settings of JSON alone
_REGISTERED: Final = ("avro", "json", "protobuf")  # formats whose schemas a registry may have
_INFERRED: Final = ("json", "csv")  # formats whose schema the first run can infer


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftSpec:
    """The policy for records whose fields are not those of the schema."""

    new: str = "ignore"  # fields that the schema lacks: add, keep (as JSON in _extra), quarantine, fail, ignore
    missing: str = "null"  # fields of the schema that the record lacks: null, quarantine, fail
    retyped: str = "quarantine"  # fields of another type: null, quarantine, fail
    unseen: bool = False  # ignore new top-level fields without a report: Debezium's envelopes have some


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSpec:
    """How strictly JSON is read."""

    strict: bool = True  # RFC 8259 and exactly one object; otherwise all that Spark accepts
    key_case: str = "exact"  # is a key in another case the same field? exact: no; ignore: yes
    repeated_keys: str = "quarantine"  # for a key that an object has twice: quarantine; or last, the last value counts


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSpec:
    type: str
    schema: str | None = None  # DDL; for avro, the schema as JSON; for protobuf, a .proto file or a descriptor set
    message: str | None = None  # of protobuf: the full name of the message; None: the first one
    tombstones: str = "keep"
    drift: DriftSpec = field(default_factory=DriftSpec)
    json: JsonSpec = field(default_factory=JsonSpec)
    options: Mapping[str, str] = field(default_factory=dict)  # of Spark's from_json, from_csv or from_avro
    unwrap: bool = False  # the records are Debezium's envelopes
    registry: RegistrySpec | None = None  # the records begin with the id of their schema
    writers: Mapping[int, str | None] = field(default_factory=dict)  # schemas by their ids; None: not registered

    @property
    def has_header(self) -> bool:
        """Whether some CSV records are headers that name the columns."""
        return self.type == "csv" and self.options.get("header", "false").lower() == "true"

    @property
    def separator(self) -> str:
        """The separator of CSV fields."""
        return self.options.get("sep", self.options.get("delimiter", ",")).replace("\\t", "\t")

    @property
    def inferred(self) -> bool:
        return self.schema is None and self.type in _INFERRED and self.registry is None


def read_format(section: Section, folder: Path, *, registered: bool = False) -> FormatSpec:
    """REGISTERED: there is a registry, although SECTION does not name it."""
    section.only(
        "type", "schema", "schema_file", "tombstones", "drift", "options", *_JSON, "wrapped", "registry", "message"
    )
    kind = section.choice("type", FORMATS)
    schema = given_schema(section, folder)
    if kind == DEBEZIUM:
        return _debezium(section, schema)
    if "wrapped" in section:
        section.fail("format.wrapped is only for format debezium", "wrapped")
    registry = read_registry(section, lambda path: str((folder / path).absolute()))
    if registry is not None and kind not in _REGISTERED:
        section.fail(f"format.registry is for {', '.join(_REGISTERED)}", "registry")
    if kind == "avro" and schema is None and registry is None and not registered:
        hint = "schema = '''{…}''', schema_file = \"order.avsc\" or [format.registry]"
        section.fail(f"format avro needs its schema: {hint}")
    if kind == "avro" and schema is not None and not _is_record(schema):
        key = "schema" if "schema" in section else "schema_file"
        section.fail('an Avro schema is JSON: {"type": "record", "name": …, "fields": […]}', key)
    if kind == "protobuf" and schema is None and registry is None and not registered:
        section.fail('format protobuf needs its schema: schema_file = "order.proto" or [format.registry]')
    if "message" in section and kind != "protobuf":
        section.fail("format.message is only for format protobuf", "message")
    if kind in ("text", "bytes") and schema is not None:
        section.fail(f"format {kind} has no schema; its one column is called value", "schema")
    return FormatSpec(
        type=kind,
        schema=schema,
        message=section.optional_text("message"),
        tombstones=section.choice("tombstones", ("keep", "drop", "quarantine"), "keep"),
        drift=_drift(section, kind, "ignore" if schema or registry or registered else "add"),
        json=_json(section, kind),
        options=section.text_map("options"),
        registry=registry,
    )


def _debezium(section: Section, row: str | None) -> FormatSpec:
    """Envelopes are JSON. Debezium sends a tombstone after each delete, for compaction; it is dropped by default."""
    if row is None:
        section.fail('format debezium needs the schema of the rows: schema = "id INT, name STRING"')
    if "drift" in section:
        section.fail("format debezium has no drift settings", "drift")
    fields = f"before STRUCT<{row}>, after STRUCT<{row}>, op STRING, ts_ms BIGINT"
    return FormatSpec(
        type="json",
        schema=f"payload STRUCT<{fields}>" if section.flag("wrapped", False) else fields,
        tombstones=section.choice("tombstones", ("keep", "drop", "quarantine"), "drop"),
        drift=DriftSpec(unseen=True),
        json=_json(section, "json"),
        options=section.text_map("options"),
        unwrap=True,
    )


def given_schema(section: Section, folder: Path) -> str | None:
    """The schema in the pipeline file, or in the file that schema_file names."""
    file = section.optional_text("schema_file")
    if file is None:
        return section.optional_text("schema")
    if "schema" in section:
        section.fail("give schema or schema_file, not both", "schema_file")
    try:
        content = (folder / file).read_bytes()
        if section.raw("type") == "protobuf" and not file.endswith(".proto"):
            return f"{DESCRIPTORS}{base64.b64encode(content).decode('ascii')}"
        return content.decode("utf-8").strip()
    except UnicodeDecodeError:
        section.fail(f"{section.label('schema_file')} is not text: {folder / file}", "schema_file")
    except OSError as error:
        section.fail(f"{section.label('schema_file')} cannot be read: {error.strerror}: {folder / file}", "schema_file")


def _is_record(schema: str) -> bool:
    try:
        value = json.loads(schema)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("type") == "record"


def _json(section: Section, kind: str) -> JsonSpec:
    for name in _JSON:
        if kind != "json" and name in section:
            section.fail(f"{section.label(name)} is only for format json", name)
    return JsonSpec(
        strict=section.flag("strict", True),
        key_case=section.choice("key_case", ("exact", "ignore"), "exact"),
        repeated_keys=section.choice("repeated_keys", ("quarantine", "last"), "quarantine"),
    )


def _drift(section: Section, kind: str, new: str) -> DriftSpec:
    """NEW is the default for new fields. They are added only to an inferred schema: one in the file is deliberate."""
    drift = section.section("drift")
    if kind != "json":
        new = "ignore"
    if drift is None:
        return DriftSpec(new=new)
    drift.only("new", "missing", "retyped")
    if kind != "json" and ("new" in drift or "missing" in drift):
        drift.fail(f"only JSON records name their fields; format {kind} has only retyped")
    return DriftSpec(
        new=drift.choice("new", ("add", "keep", "quarantine", "fail", "ignore"), new),
        missing=drift.choice("missing", ("null", "quarantine", "fail"), "null"),
        retyped=drift.choice("retyped", ("null", "quarantine", "fail"), "quarantine"),
    )
