"""Fields inside of objects: the keys of nested JSON objects that are not in the schema.

Spark reads an object into a struct and drops the keys that the struct lacks. To see them, the same text is read with
its objects as text, level by level, and the keys of each are compared with the schema. This is one more pass over every
record, so it is done only if the schema has structs.

    schema    id INT, address STRUCT<city STRING>, items ARRAY<STRUCT<sku STRING>>
    record    {"id": 1, "address": {"city": "Graz", "zip": 8010}, "items": [{"sku": "a", "n": 2}]}
    names     address.zip, items[].n

In a name `[]` stands for the elements of an array, `{}` for the values of a map. A key that cannot be a column is put
in backticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

COLUMN_NAME: Final = "^[A-Za-z_][A-Za-z0-9_-]{0,127}$"  # accepted by every kind of table
_ITEMS: Final = "[]"
_VALUES: Final = "{}"


def has_objects(kind: T.DataType) -> bool:
    """Whether there is a struct in KIND."""
    if isinstance(kind, T.ArrayType):
        return has_objects(kind.elementType)
    if isinstance(kind, T.MapType):
        return has_objects(kind.valueType)
    return isinstance(kind, T.StructType)


def inner_names(schema: T.StructType, text: Column, under: str = "") -> Column | None:
    """The keys of objects inside of TEXT that are not in SCHEMA, as an array of names; None if it has no structs.

    UNDER is a regular expression: only names that match it count.
    """
    if not any(has_objects(field.dataType) for field in schema.fields):
        return None
    found = F.array_distinct(_inside(schema, text, ""))
    return F.filter(found, lambda name: F.rlike(name, F.lit(under))) if under else found


def unfit_inner(names: Column, schema: T.StructType) -> Column:
    """Those of NAMES that cannot be a field beside those of SCHEMA."""
    taken = F.array(*(F.lit(path.lower()) for path in paths(schema)))
    return F.filter(names, lambda name: F.contains(name, F.lit("`")) | F.array_contains(taken, F.lower(name)))


def paths(kind: T.DataType, place: str = "") -> Iterator[str]:
    """The names of all fields in KIND, at every level."""
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            path = f"{place}.{field.name}" if place else field.name
            yield path
            yield from paths(field.dataType, path)
    elif isinstance(kind, T.ArrayType):
        yield from paths(kind.elementType, f"{place}{_ITEMS}")
    elif isinstance(kind, T.MapType):
        yield from paths(kind.valueType, f"{place}{_VALUES}")


def with_field(kind: T.DataType, path: str, added: T.DataType) -> T.DataType:
    """KIND with one more field at PATH, a name from `inner_names`; KIND itself if there is no such place."""
    if isinstance(kind, T.ArrayType) and path.startswith(_ITEMS):
        return T.ArrayType(with_field(kind.elementType, path.removeprefix(_ITEMS), added), kind.containsNull)
    if isinstance(kind, T.MapType) and path.startswith(_VALUES):
        value = with_field(kind.valueType, path.removeprefix(_VALUES), added)
        return T.MapType(kind.keyType, value, kind.valueContainsNull)
    if not isinstance(kind, T.StructType):
        return kind
    path = path.removeprefix(".")
    name, rest = _first(path)
    if not rest:
        known = name.lower() in (field.name.lower() for field in kind.fields)
        return kind if known else T.StructType([*kind.fields, T.StructField(name, added)])
    return T.StructType(
        [
            T.StructField(field.name, with_field(field.dataType, rest, added)) if field.name == name else field
            for field in kind.fields
        ]
    )


def type_at(kind: T.DataType, path: str) -> T.DataType:
    """The type of the field at PATH; STRING, which takes any JSON as text, if there is none."""
    if isinstance(kind, T.ArrayType) and path.startswith(_ITEMS):
        return type_at(kind.elementType, path.removeprefix(_ITEMS))
    if not path:
        return kind
    if isinstance(kind, T.StructType):
        name, rest = _first(path.removeprefix("."))
        if name in kind.names:
            return type_at(kind[name].dataType, rest)
    return T.StringType()


def ddl(kind: T.DataType) -> str:
    """As Spark's `simpleString`, with the names of fields in backticks: they may hold anything."""
    if isinstance(kind, T.StructType):
        fields = ", ".join(f"`{field.name.replace('`', '``')}`: {ddl(field.dataType)}" for field in kind.fields)
        return f"struct<{fields}>"
    if isinstance(kind, T.ArrayType):
        return f"array<{ddl(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"map<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
    return kind.simpleString()


def _first(path: str) -> tuple[str, str]:
    """a, .b of a.b; a, [].b of a[].b."""
    end = min((place for mark in (".", _ITEMS, _VALUES) if (place := path.find(mark)) >= 0), default=len(path))
    return path[:end], path[end:]


def _inside(schema: T.StructType, text: Column, place: str) -> Column:
    """For every field of SCHEMA that holds objects, the names that are new in them."""
    fields = [field for field in schema.fields if has_objects(field.dataType)]
    if not fields:
        return _none()
    raw = F.from_json(text, T.StructType([T.StructField(field.name, T.StringType()) for field in fields]))
    return F.concat(*(_of(raw[field.name], field.dataType, f"{place}{field.name}") for field in fields))


def _of(text: Column, kind: T.DataType, path: str) -> Column:
    if isinstance(kind, T.StructType):
        known = F.array(*(F.lit(name) for name in kind.names)) if kind.names else _none()
        new = F.transform(F.array_except(F.json_object_keys(text), known), lambda key: _named(path, key))
        return F.concat(F.coalesce(new, _none()), _inside(kind, text, f"{path}."))
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        items = F.from_json(text, "array<string>")
        return _flat(items, lambda item: _of(item, element, f"{path}{_ITEMS}"))
    assert isinstance(kind, T.MapType)
    value = kind.valueType
    values = F.map_values(F.from_json(text, "map<string,string>"))
    return _flat(values, lambda item: _of(item, value, f"{path}{_VALUES}"))


def _flat(items: Column, names: Callable[[Column], Column]) -> Column:
    found = F.flatten(F.transform(items, names))
    return F.coalesce(F.array_distinct(found), _none())


def _named(path: str, key: Column) -> Column:
    fitting = F.rlike(key, F.lit(COLUMN_NAME))
    quoted = F.concat(F.lit(f"{path}.`"), key, F.lit("`"))
    return F.when(fitting, F.concat(F.lit(f"{path}."), key)).otherwise(quoted)


def _none() -> Column:
    return F.array().cast("array<string>")
