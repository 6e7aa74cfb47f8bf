"""From a JSON Schema to columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.json_schema import columns_of


def ddl(properties: Any, **more: Any) -> str:
    return columns_of(json.dumps({"type": "object", "properties": properties, **more}))


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "STRING"),
        ({"type": "string", "format": "date-time"}, "TIMESTAMP"),
        ({"type": "string", "format": "date"}, "DATE"),
        ({"type": "integer"}, "BIGINT"),
        ({"type": "integer", "connect.type": "int32"}, "INT"),
        ({"type": "number"}, "DOUBLE"),
        ({"type": ["number", "integer"]}, "DOUBLE"),
        ({"type": "boolean"}, "BOOLEAN"),
        ({"type": ["null", "integer"]}, "BIGINT"),
        ({"oneOf": [{"type": "null"}, {"type": "number"}]}, "DOUBLE"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "STRING"),
        ({"type": ["string", "integer"]}, "STRING"),
        ({"enum": ["a", "b", None]}, "STRING"),
        ({"enum": [1, 2]}, "BIGINT"),
        ({"const": True}, "BOOLEAN"),
        ({"type": "array", "items": {"type": "integer"}}, "ARRAY<BIGINT>"),
        ({"type": "array"}, "ARRAY<STRING>"),
        ({"type": "object"}, "STRING"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "MAP<STRING, DOUBLE>"),
        ({"type": "object", "properties": {"b": {"type": "integer"}}}, "STRUCT<`b`: BIGINT>"),
        ({"$ref": "#/definitions/point"}, "STRUCT<`x`: DOUBLE>"),
        ({"$ref": "#/definitions/list"}, "STRUCT<`next`: STRING>"),
        ({"$ref": "elsewhere.json"}, "STRING"),
        ({"$ref": "#/definitions/nothing"}, "STRING"),
        (
            {"allOf": [{"$ref": "#/definitions/point"}, {"properties": {"y": {"type": "integer"}}}]},
            "STRUCT<`x`: DOUBLE, `y`: BIGINT>",
        ),
        ({}, "STRING"),
        (True, "STRING"),
    ],
)
def test_the_type_of_a_field(schema: Any, kind: str) -> None:
    definitions = {
        "point": {"type": "object", "properties": {"x": {"type": "number"}}},
        "list": {"type": "object", "properties": {"next": {"$ref": "#/definitions/list"}}},
    }
    assert ddl({"a": schema}, definitions=definitions) == f"`a` {kind}"


def test_names_are_quoted_and_the_root_may_be_a_reference() -> None:
    assert ddl({"a b": {"type": "string"}, "c`d": {"type": "integer"}}) == "`a b` STRING, `c``d` BIGINT"
    root = {"$ref": "#/$defs/order", "$defs": {"order": {"type": "object", "properties": {"id": {"type": "string"}}}}}
    assert columns_of(json.dumps(root)) == "`id` STRING"


@pytest.mark.parametrize(
    "text", ["[", "true", "{}", '{"type": "string"}', '{"$ref": "#"}', '{"allOf": [{"$ref": "#"}]}']
)
def test_what_gives_no_columns_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="the registered"):
        columns_of(text)
