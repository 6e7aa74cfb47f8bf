"""Hypothesis values for any table in any version: fields that the version lacks stay at their defaults."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args, get_origin

from hypothesis import strategies as st

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.notation import OUR_TAGS, Column, Struct, StructMeta
from ixion.language.protocol.resolve import holds

# The oracles turn times into dates and spans of time, which end earlier than an int64 does.
MILLISECONDS = st.integers(0, 4_102_444_800_000)
INTEGERS = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
}
OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=12) | st.sampled_from(["orders", "é" * 70, "x" * 300]),
    "bytes": st.binary(max_size=20) | st.just(b"b" * 200),
    "records": st.binary(max_size=20) | st.just(b"r" * 5000),
}


@cache
def values(table: StructMeta, version: int) -> st.SearchStrategy[Struct]:
    present = {
        column.name: of_annotation(column.annotation, column, version)
        for column in table.columns
        if holds(column.versions, version) and column.tag < OUR_TAGS  # the oracles do not know ours
    }
    return st.builds(table.blank().replace, **present)


def of_annotation(annotation: Any, column: Column, version: int) -> st.SearchStrategy[Any]:
    if type(None) in get_args(annotation):
        inner = of_annotation(get_args(annotation)[0], column, version)
        return st.none() | inner if holds(column.nullable, version) else inner
    if isinstance(annotation, StructMeta):
        return values(annotation, version)
    if get_origin(annotation) is tuple:
        return st.lists(of_annotation(get_args(annotation)[0], column, version), max_size=3).map(tuple)
    assert get_origin(annotation) is Annotated
    return scalar(annotation.__metadata__[0].name, column.name)


def scalar(kind: str, name: str) -> st.SearchStrategy[Any]:
    if name.endswith("error_code"):
        return st.sampled_from([int(code) for code in ErrorCode])
    if kind == "int64" and name.endswith(("_ms", "timestamp")):
        return MILLISECONDS
    if kind == "int32" and name.endswith("_ms"):
        return st.integers(0, 2**31 - 1)
    return INTEGERS[kind] if kind in INTEGERS else OTHERS[kind]
