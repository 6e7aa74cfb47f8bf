"""kio, Aiven's library of Kafka messages, as the judge of our codec. It is never given hostile bytes: they kill it."""

from __future__ import annotations

import dataclasses
import io
from datetime import datetime, timedelta
from enum import IntEnum
from importlib import import_module
from typing import Any
from uuid import UUID

from kio.serial import entity_reader, entity_writer

from ixion.language.protocol.notation import OUR_TAGS, Struct
from ixion.language.protocol.resolve import holds

# what kio calls differently
NAMES = {
    "type": ("type", "type_"),
    "generation_id_or_member_epoch": ("generation_id_or_member_epoch", "generation_id"),
    "api_key": ("api_key", "request_api_key"),
    "api_version": ("request_api_version",),
}
MILLISECOND = timedelta(milliseconds=1)


def kio_class(module: str, name: str) -> Any:
    """The class of that name, or None if kio has no such module."""
    try:
        return getattr(import_module(f"kio.schema.{module}"), name)
    except ModuleNotFoundError:
        return None


def kio_decode(cls: Any, data: bytes) -> Any:
    value, size = entity_reader(cls)(data, 0)
    assert size == len(data)
    return value


def kio_encode(value: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(value))(buffer, value)
    return buffer.getvalue()


def differences(ours: Any, theirs: Any, version: int, path: str = "") -> list[str]:
    """Where two values differ, each in its own clothes: kio has enums, dates and spans where we have numbers."""
    if isinstance(ours, Struct):
        columns = [c for c in type(ours).columns if holds(c.versions, version) and c.tag < OUR_TAGS]
        fields = dataclasses.fields(theirs)
        found = []
        for column, field in zip(columns, fields, strict=True):
            if field.name not in NAMES.get(column.name, (column.name, column.name.removesuffix("_ms"))):
                found.append(f"{path}.{column.name} is called {field.name}")
            mine, other = getattr(ours, column.name), getattr(theirs, field.name)
            found += differences(mine, other, version, f"{path}.{column.name}")
        return found
    if isinstance(ours, tuple):
        if len(ours) != len(theirs):
            return [f"{path}: {len(ours)} elements, {len(theirs)} expected"]
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [
            line for index, (mine, other) in pairs for line in differences(mine, other, version, f"{path}[{index}]")
        ]
    expected = undressed(theirs, ours)
    return [] if ours == expected else [f"{path}: {ours!r}, {expected!r} expected"]


def undressed(theirs: Any, ours: Any) -> Any:
    match theirs:
        case timedelta():
            return theirs // MILLISECOND
        case datetime():
            return round(theirs.timestamp() * 1000)  # as kio writes it
        case UUID():
            return theirs.bytes
        case IntEnum():
            return int(theirs)
        case None if isinstance(ours, int):
            return -1
        case None if isinstance(ours, bytes) and len(ours) == 16:
            return bytes(16)
        case _:
            return theirs
