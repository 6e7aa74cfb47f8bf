r"""How `ixion consume` writes a record.

    value      the value as it is, and a line end
    text       partition:offset  time  key  value  headers, separated by tabs, in local time
    json       a line of JSON, as in `record_json`
    template   any text with fields in braces: '{partition} {offset} {key}={value}\n'
    kcat       any text with kcat's letters: '%p %o %k=%s\n'

Fields of a template: topic, partition, offset, timestamp (milliseconds), time (local), key, value, headers (a=1,b=2).
`{{` is a brace. kcat's letters: %t topic, %p partition, %o offset, %k key, %K its length (-1 for null), %s or %v value,
%S its length, %R its length as four bytes (big-endian, as in Kafka's protocol), %T timestamp, %h headers, %% a percent
sign; a text with one of them is read that way, braces and all. In both, \t, \n, \r, \0 and \x41 mean what they usually
do. A line end is added unless the text ends in one or in \0, or has a %R. Null keys and values, so tombstones too, are
written as the null marker; beside a %R, which tells them from empty ones, as nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from string import Formatter

from ixion.cli.command import nearest
from ixion.cli.options import unescape
from ixion.cli.record_json import record_line
from ixion.clients.metadata import TopicPartition
from ixion.language.records.record import Record

Write = Callable[[TopicPartition, Record], bytes]
FIELDS = ("topic", "partition", "offset", "timestamp", "time", "key", "value", "headers")


LETTERS = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "k": "key",
    "K": "key_size",
    "s": "value",
    "v": "value",
    "S": "value_size",
    "R": "binary_size",
    "T": "timestamp",
    "h": "headers",
}


def writer(name: str, null_marker: str) -> Write:
    """ValueError, naming the possible formats, if it is not a format."""
    null = null_marker.encode()
    if name == "value":
        return lambda _, record: (null if record.value is None else record.value) + b"\n"
    if name == "json":
        return lambda place, record: record_line(place, record).encode() + b"\n"
    if name == "text":
        return joined(template_pieces(r"{partition}:{offset}\t{time}\t{key}\t{value}\t{headers}", null))
    if any(f"%{letter}" in name for letter in LETTERS) or ("%" in name and "{" not in name):
        binary = "%R" in name.replace("%%", "")
        return joined(kcat_pieces(name, b"" if binary else null), line_end=not binary)
    if "{" in name:
        return joined(template_pieces(name, null))
    raise ValueError(
        f"--format must be value, text, json, or a template such as '{{key}}: {{value}}' or '%k: %v', not {name!r}"
    )


def template_pieces(text: str, null: bytes) -> list[bytes | Write]:
    pieces: list[bytes | Write] = []
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"--format {text!r} cannot be read: {error}") from None
    for literal, field, spec, conversion in parsed:
        pieces.append(unescape(literal))
        if field is None:
            continue
        if field not in FIELDS:
            fields = ", ".join(FIELDS)
            raise ValueError(
                f"--format {text!r} has no field {field!r}{nearest(field, list(FIELDS))} (fields: {fields})"
            )
        if spec or conversion:
            raise ValueError(f"--format {text!r}: the field {field!r} takes no ':' or '!'")
        pieces.append(field_writer(field, null))
    return pieces


def kcat_pieces(text: str, null: bytes) -> list[bytes | Write]:
    pieces: list[bytes | Write] = []
    literal, *marked = text.split("%")
    pieces.append(unescape(literal))
    at = 0
    while at < len(marked):
        part = marked[at]
        at += 1
        if not part and at < len(marked):  # %%
            pieces.append(b"%" + unescape(marked[at]))
            at += 1
        elif part[:1] in LETTERS and part:
            pieces.append(field_writer(LETTERS[part[0]], null))
            pieces.append(unescape(part[1:]))
        else:
            letters = " ".join(f"%{letter}" for letter in LETTERS)
            raise ValueError(f"--format {text!r} has no field '%{part[:1]}' (fields: {letters}; %% is a percent sign)")
    return pieces


def joined(pieces: list[bytes | Write], *, line_end: bool = True) -> Write:
    last = next((piece for piece in reversed(pieces) if piece), b"")
    if line_end and not (isinstance(last, bytes) and last.endswith((b"\n", b"\0"))):
        pieces = [*pieces, b"\n"]

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
        "key_size": lambda _, record: b"%d" % (-1 if record.key is None else len(record.key)),
        "value_size": lambda _, record: b"%d" % (-1 if record.value is None else len(record.value)),
        "binary_size": lambda _, record: (-1 if record.value is None else len(record.value)).to_bytes(4, signed=True),
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


def utc_time(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return str(timestamp_ms)
