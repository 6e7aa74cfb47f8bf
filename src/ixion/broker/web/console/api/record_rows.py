"""A record as JSON: its texts, cut to what a list shows."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from ixion.broker.web.console.api.cost import FILTER_LIMITS

if TYPE_CHECKING:
    from ixion.broker.web.console.api.registry import Registry
    from ixion.language.records.record import Record


class Exact(TypedDict):
    kind: str  # json, text, bytes (as base64) or null
    text: str
    size: int
    cut: bool


class Text(Exact, total=False):
    schema: str  # its kind, id and name, if a registry has it
    decoded: str  # JSON, if it can be read by its schema


class Header(TypedDict):
    name: str
    value: Text


class RecordRow(TypedDict):
    partition: int
    offset: int
    timestamp: int
    key: Text
    value: Text
    headers: list[Header]
    size: int


class Sizes(NamedTuple):
    """How much of a record is shown."""

    text: int  # bytes of its key and value
    header: int
    headers: int


IN_LISTS: Final = Sizes(2_000, 300, 20)
ALONE: Final = Sizes(1 << 20, 64 << 10, 20)
EXPORTED: Final = Sizes(1 << 30, 1 << 30, 1 << 30)


def row_of(number: int, record: Record, sizes: Sizes, registry: Registry | None = None) -> RecordRow:
    headers = record.headers[: sizes.headers]
    return RecordRow(
        partition=number,
        offset=record.offset,
        timestamp=record.timestamp,
        key=text_by(registry, record.key, sizes.text),
        value=text_by(registry, record.value, sizes.text),
        headers=[Header(name=name[: sizes.header], value=text_of(value, sizes.header)) for name, value in headers],
        size=max(record.key_size, 0) + max(record.value_size, 0),
    )


def text_by(registry: Registry | None, data: bytes | None, most: int) -> Text:
    made = text_of(data, most)
    found = registry.decoded(data) if registry is not None and data is not None else None
    if found is not None:
        made["schema"] = found.schema
        if found.text:
            made["decoded"] = found.text if len(found.text) <= most else f"{found.text[:most]} …"
    return made


def text_of(data: bytes | None, most: int) -> Text:
    if data is None:
        return Text(kind="null", text="", size=0, cut=False)
    part = data[:most]
    cut = len(part) < len(data)
    try:
        text = part.decode() if not cut else part.decode(errors="strict")
    except UnicodeDecodeError as error:
        if not cut or error.start < most - 4:  # else a character was cut in two
            return Text(kind="bytes", text=b64encode(part).decode(), size=len(data), cut=cut)
        text = part[: error.start].decode()
    if any(ord(each) < 32 and each not in "\t\n\r" for each in text[:200]):
        return Text(kind="bytes", text=b64encode(part).decode(), size=len(data), cut=cut)
    return Text(kind="json" if is_json(text, cut) else "text", text=text, size=len(data), cut=cut)


def is_json(text: str, cut: bool) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    if cut or len(text) > FILTER_LIMITS.json_bytes:
        return True  # it looks like it; to parse it would hold up the event loop
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
