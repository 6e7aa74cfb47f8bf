"""Requests that can be read and make no sense: any field of any table, drawn from what is likely to hurt."""

from __future__ import annotations

import random
from typing import Annotated, Any, get_args, get_origin

from ixion.language.protocol.notation import Column, Struct, StructMeta
from ixion.language.protocol.resolve import holds
from tests.log.support import batch, marker

TEXTS = ("", "t", "u", "g", "member", "x" * 300, "é", ".", "a/b", "__consumer_offsets", "__transaction_state", "range")
SETTINGS = (
    "retention.ms",
    "cleanup.policy",
    "compact",
    "delete",
    "-1",
    "1000",
    "1001",
    "INFO",
    "roundrobin",
    "consumer",
)
EDGES = (-2, -1, -1, 0, 0, 0, 1, 1, 2, 3)
RECORDS = (
    b"",
    b"r" * 30,
    batch(b"v"),
    batch(b"v")[:-1],
    batch(b"v", b"w", producer=(1, 0, 0)),
    batch(b"v", producer=(1000, 0, 0), transactional=True),
    marker(1000, 0, commit=True),
)
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class Anything:
    def __init__(self, seed: int, ids: list[bytes]) -> None:
        self._chance = random.Random(seed)
        self._ids = [*ids, bytes(16), b"x" * 16]

    def of(self, table: StructMeta, version: int) -> Struct:
        present = {
            column.name: self._value(column.annotation, column, version)
            for column in table.columns
            if holds(column.versions, version)
        }
        made: Struct = table.blank().replace(**present)
        return made

    def _value(self, annotation: Any, column: Column, version: int) -> Any:
        if type(None) in get_args(annotation):
            if holds(column.nullable, version) and self._chance.random() < 0.2:
                return None
            annotation = get_args(annotation)[0]
        if isinstance(annotation, StructMeta):
            return self.of(annotation, version)
        if get_origin(annotation) is tuple:
            count = self._chance.choice((0, 1, 1, 1, 2, 3))
            return tuple(self._value(get_args(annotation)[0], column, version) for _ in range(count))
        assert get_origin(annotation) is Annotated
        return self._scalar(annotation.__metadata__[0].name, column.name)

    def _scalar(self, kind: str, name: str) -> Any:
        chance = self._chance
        if kind in BITS:
            most = 1 << BITS[kind] - 1
            if name.endswith("_ms") and kind == "int32":
                return chance.choice((-1, 0, 1, 20))  # nobody waits for long here
            return chance.choice((*EDGES, -most, most - 1))
        if kind in ("uint16", "uint32"):
            return chance.choice((0, 1, 65_535))
        if kind == "bool":
            return chance.random() < 0.5
        if kind == "float64":
            return chance.choice((0.0, -1.0, float("inf"), float("nan")))
        if kind == "uuid":
            return chance.choice(self._ids)
        if kind == "records":
            return chance.choice(RECORDS)
        if kind == "bytes":
            return chance.choice((b"", b"b" * 20, b"\0\1\0\0\0\0\xff\xff\xff\xff", chance.randbytes(12)))
        return chance.choice(TEXTS if chance.random() < 0.7 else SETTINGS)
