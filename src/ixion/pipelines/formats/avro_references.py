"""Avro schemas that use types of other registered schemas, as one schema that needs no other.

A reference has the full name of a type, and the subject and version that define it. Avro defines a type where it is
used first; from there on its name is enough. So the definition takes the place of the first use of the name:

    orders      {"name": "shop.Order", "fields": [{"name": "to", "type": "shop.Address"}, …]}
    address     {"name": "shop.Address", …}
    together    {"name": "shop.Order", "fields": [{"name": "to", "type": {"name": "shop.Address", …}}, …]}
"""

from __future__ import annotations

import json
from typing import Any, Final

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.registry import Registered, Registry

_DEEPEST: Final = 50  # references of references
_NAMED: Final = ("record", "enum", "fixed", "error")


def whole_schema(registry: Registry, one: Registered) -> str:
    """The schema of ONE with the definitions of all types that it refers to."""
    if not one.references:
        return one.schema
    others: dict[str, Any] = {}
    _collect(registry, one, others, _DEEPEST)
    return json.dumps(_together(_parsed(one), "", others))


def _collect(registry: Registry, one: Registered, others: dict[str, Any], depth: int) -> None:
    """Add the types that ONE refers to, by their full names; each is asked for once, however many schemas use it."""
    if not depth:
        raise PipelineError(f"references of the registered Avro schemas are more than {_DEEPEST} deep")
    for name, subject, version in one.references:
        if name in others:
            continue
        found = registry.version(subject, version)
        if found is None:
            raise PipelineError(
                f"the schema registry has no version {version} of subject {subject}, which defines {name}"
            )
        others[name] = _parsed(found)
        _collect(registry, found, others, depth - 1)


def _parsed(one: Registered) -> Any:
    try:
        return json.loads(one.schema)
    except ValueError as error:
        raise PipelineError(f"the Avro schema with id {one.id} is not JSON: {error}") from None


def _together(kind: Any, space: str, others: dict[str, Any]) -> Any:
    """KIND with definitions from OTHERS in place of the first use of each name. A definition that was used is removed
    from OTHERS. SPACE is the namespace of names without a dot."""
    if isinstance(kind, str):
        full = kind if "." in kind or not space else f"{space}.{kind}"
        name = full if full in others else kind
        return _together(others.pop(name), "", others) if name in others else kind
    if isinstance(kind, list):
        return [_together(one, space, others) for one in kind]
    if not isinstance(kind, dict):
        return kind
    if kind.get("type") in _NAMED:
        named = str(kind.get("name", ""))
        space = named.rpartition(".")[0] if "." in named else str(kind.get("namespace", space))
        fields = [{**field, "type": _together(field["type"], space, others)} for field in kind.get("fields", ())]
        return {**kind, "fields": fields} if "fields" in kind else kind
    return {
        key: _together(value, space, others) if key in ("type", "items", "values") else value
        for key, value in kind.items()
    }
