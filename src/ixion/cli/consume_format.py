r"""How `ixion consume` writes a record.

    value      the value as it is, and a line end
    text       partition:offset  time  key  value  headers, divided by tabs, in local time
    json       a line of JSON, as in `record_json`
    template   any text with fields in braces: '{partition} {offset} {key}={value}\n'

Fields of a template: topic, partition, offset, timestamp (milliseconds), time (local), key, value, headers (a=1,b=2).
`{{` is a brace; \t, \n and \0 mean what they usually do; a line end is added unless the template ends in one. Null keys
and values, so tombstones too, are written as the null marker.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from string import Formatter

from ixion.cli.record_json import record_line
from ixion.clients.metadata import TopicPartition
from ixion.records.record import Record

Write = Callable[[TopicPartition, Record], bytes]
FIELDS = ("topic", "partition", "offset", "timestamp", "time", "key", "value", "headers")


def writer(name: str, null_marker: str) -> Write:
    """ValueError, saying what is possible, if it is no format."""
    null = null_marker.encode()
    if name == "value":
        return lambda _, record: (null if record.value is None else record.value) + b"\n"
    if name == "json":
        return lambda place, record: record_line(place, record).encode() + b"\n"
    if name == "text":
        return template(r"{partition}:{offset}\t{time}\t{key}\t{value}\t{headers}", null)
    if "{" not in name:
        raise ValueError(f"--format is value, text, json or a template such as '{{key}}: {{value}}', not {name!r}")
    return template(name, null)


def template(text: str, null: bytes) -> Write:
    from ixion.cli.options import unescape

    pieces: list[bytes | Callable[[TopicPartition, Record], bytes]] = []
    try:
        parsed = list(Formatter().parse(unescape(text)))
    except ValueError as error:
        raise ValueError(f"the template {text!r} cannot be read: {error}") from None
    for literal, field, spec, conversion in parsed:
        pieces.append(literal.encode())
        if field is not None:
            if field not in FIELDS or spec or conversion:
                raise ValueError(f"the template {text!r} has {{{field}}}; fields are {', '.join(FIELDS)}")
            pieces.append(field_writer(field, null))
    if not unescape(text).endswith(("\n", "\0")):
        pieces.append(b"\n")

    def write(place: TopicPartition, record: Record) -> bytes:
        return b"".join([piece if isinstance(piece, bytes) else piece(place, record) for piece in pieces])

    return write


def field_writer(name: str, null: bytes) -> Write:
    writers: dict[str, Write] = {
        "topic": lambda place, _: place.topic.encode(),
        "partition": lambda place, _: b"%d" % place.partition,
        "offset": lambda _, record: b"%d" % record.offset,
        "timestamp": lambda _, record: b"%d" % record.timestamp,
        "time": lambda _, record: local_time(record.timestamp).encode(),
        "key": lambda _, record: null if record.key is None else record.key,
        "value": lambda _, record: null if record.value is None else record.value,
        "headers": lambda _, record: b",".join(
            name.encode() + b"=" + (null if value is None else value) for name, value in record.headers
        ),
    }
    return writers[name]


def local_time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return str(timestamp_ms)
