"""The columns that a JSON Schema stands for, as DDL.

    {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}
    ->  `id` BIGINT, `at` TIMESTAMP

A value without a single type (a union, any type, a reference to itself) becomes STRING and holds the JSON text. Limits
such as `minimum` and `pattern` are ignored: use expectations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ixion.pipelines.errors import PipelineError

Schema = Mapping[str, Any]
ANYTHING: Final = "STRING"
DEEPEST: Final = 50
_FORMATS: Final = {"date-time": "TIMESTAMP", "date": "DATE"}
_CONNECT: Final = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "float32": "FLOAT"}  # of Kafka Connect
_PLAIN: Final = {"string": "STRING", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_VALUES: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def columns_of(text: str) -> str:
    """The columns, as DDL, of the schema in TEXT, which must be that of an object with properties."""
    try:
        root = json.loads(text)
    except ValueError as error:
        raise PipelineError(f"the registered schema is not JSON: {error}") from None
    fields = _properties(root, root, ()) if isinstance(root, dict) else None
    if not fields:
        raise PipelineError("the registered JSON Schema is not that of an object with properties")
    return ", ".join(f"{_quoted(name)} {kind}" for name, kind in fields.items())


def _type_of(schema: Any, root: Schema, above: tuple[str, ...]) -> str:
    """ABOVE are the references that led here."""
    if not isinstance(schema, dict) or len(above) > DEEPEST:
        return ANYTHING
    if "$ref" in schema:
        name = str(schema["$ref"])
        found = None if name in above else _referred(name, root)
        return _type_of(found, root, (*above, name))
    for word in ("oneOf", "anyOf"):
        if word in schema:
            others = [one for one in schema[word] if not (isinstance(one, dict) and one.get("type") == "null")]
            return _type_of(others[0], root, (*above, word)) if len(others) == 1 else ANYTHING
    kinds = schema.get("type", _kinds_of_values(schema))
    named = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
    if schema.get("properties") or "allOf" in schema:
        named = named or ["object"]
    if sorted(named) == ["integer", "number"]:
        named = ["number"]
    return _one_type(named[0], schema, root, above) if len(named) == 1 else ANYTHING


def _one_type(kind: str, schema: Schema, root: Schema, above: tuple[str, ...]) -> str:
    if kind == "object":
        fields = _properties(schema, root, above)
        if fields:
            return f"STRUCT<{', '.join(f'{_quoted(name)}: {field}' for name, field in fields.items())}>"
        values = schema.get("additionalProperties")
        return f"MAP<STRING, {_type_of(values, root, (*above, '{}'))}>" if isinstance(values, dict) else ANYTHING
    if kind == "array":
        return f"ARRAY<{_type_of(schema.get('items'), root, (*above, '[]'))}>"
    if kind == "string":
        return _FORMATS.get(str(schema.get("format")), "STRING")
    return _CONNECT.get(str(schema.get("connect.type")), _PLAIN.get(kind, ANYTHING))


def _properties(schema: Schema, root: Schema, above: tuple[str, ...]) -> dict[str, str]:
    """The properties of an object, with those of its `$ref` and `allOf`."""
    if len(above) > DEEPEST:
        return {}
    fields: dict[str, str] = {}
    if "$ref" in schema and (name := str(schema["$ref"])) not in above:
        found = _referred(name, root)
        fields |= _properties(found, root, (*above, name)) if isinstance(found, dict) else {}
    for part in schema.get("allOf", ()):
        if isinstance(part, dict):
            fields |= _properties(part, root, (*above, "allOf"))
    for name, value in schema.get("properties", {}).items():
        fields[name] = _type_of(value, root, (*above, "."))
    return fields


def _referred(name: str, root: Schema) -> Any:
    """Resolve a reference within the same schema; None if it is elsewhere or missing."""
    found: Any = root
    if not name.startswith("#"):
        return None
    for part in name.removeprefix("#").strip("/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if part and isinstance(found, dict) else found
    return found


def _kinds_of_values(schema: Schema) -> list[str]:
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    kinds = (next((kind for type_, kind in _VALUES if isinstance(value, type_)), "") for value in values)
    return list(dict.fromkeys(kind for kind in kinds if kind))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
