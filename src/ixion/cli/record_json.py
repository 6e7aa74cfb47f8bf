"""A record as one line of JSON, so that `ixion produce` reads what `ixion consume` wrote.

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1767225600000,
     "key": "a", "value": {"base64": "/w=="}, "headers": [["trace", "1"]]}

Text is UTF-8; other bytes are `{"base64": …}`; null is null. Headers are pairs, because a name may occur twice; when
read, an object is accepted too, and so is a timestamp as text. A value (or key) that is any other object, list, number
or boolean is sent as its JSON text. `topic` and `offset` are ignored; any other field is an error.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from ixion.cli.command import LARGEST, LARGEST_OFFSET, nearest
from ixion.clients.metadata import TopicPartition
from ixion.language.records.record import Record

FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
HEADER_CHOICES = "headers are an object, or a list of [name, value] pairs"


class Outgoing(NamedTuple):
    """A record to be sent, with the fields of its line."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    is_copy: bool = False  # `ixion consume` wrote the line, so the partition is that of another topic, or was


def show_bytes(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def read_bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return in_utf8(value)
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return b64decode(value["base64"], validate=True)
        except (TypeError, ValueError):
            raise ValueError(f"{value['base64']!r} is not base64") from None
    return in_utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def in_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair has no UTF-8 form") from None


def record_line(place: TopicPartition, record: Record) -> str:
    return json.dumps(
        {
            "topic": place.topic,
            "partition": place.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": show_bytes(record.key),
            "value": show_bytes(record.value),
            "headers": [[name, show_bytes(value)] for name, value in record.headers],
        },
        ensure_ascii=False,
    )


def parse_line(line: bytes) -> Outgoing:
    """ValueError, saying what is wrong, if it is not such a line."""
    try:
        found = json.loads(line)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict) or "value" not in found:
        raise ValueError('a line is an object with at least a "value"')
    for name in found.keys() - set(FIELDS):
        raise ValueError(f"there is no field {name!r}{nearest(name, list(FIELDS))} (fields: {', '.join(FIELDS)})")
    partition, timestamp = found.get("partition"), found.get("timestamp")
    if partition is not None and (not is_whole(partition) or not 0 <= partition <= LARGEST):
        raise ValueError(f"{partition!r} is not a partition number")
    return Outgoing(
        read_bytes(found.get("key")),
        read_bytes(found["value"]),
        read_headers(found.get("headers") or ()),
        parse_timestamp(timestamp),
        partition,
        is_copy="offset" in found,
    )


def read_headers(found: Any) -> tuple[tuple[str, bytes | None], ...]:
    pairs = list(found.items()) if isinstance(found, dict) else found
    if not isinstance(pairs, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
    ):
        raise ValueError(HEADER_CHOICES)
    if not all(isinstance(name, str) for name, _ in pairs):
        raise ValueError(HEADER_CHOICES)
    return tuple((name, read_bytes(value)) for name, value in pairs)


def parse_timestamp(found: Any) -> int | None:
    if isinstance(found, str):
        from ixion.clients.starts import parse_time_ms

        return parse_time_ms(found)
    if found is not None and (not is_whole(found) or abs(found) > LARGEST_OFFSET):
        raise ValueError(f"timestamp {found!r} is neither milliseconds nor a time")
    return None if found is None else int(found)


def is_whole(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool)
