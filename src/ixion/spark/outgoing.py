"""Rows of a frame as records to be sent: which columns there may be, and how a batch of Arrow becomes records.

Columns are those of Spark's Kafka connector: `value`, and if they exist `key`, `headers`, `topic`, `partition`. The
other columns that a topic is read with (`offset`, `timestamp`, `timestampType`) are not written, so that a frame which
was read can be written. Any other column is an error: it would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow

TEXT: Final = ("string", "binary")
HEADERS: Final = "array<struct<key:string,value:binary>>"
WRITTEN: Final = {"key": TEXT, "value": TEXT, "headers": (HEADERS,), "topic": ("string",), "partition": ("int",)}
LEFT_OUT: Final = ("offset", "timestamp", "timestampType")

Headers = tuple[tuple[str, bytes | None], ...]


class Outgoing(NamedTuple):
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


def check_columns(types: Mapping[str, str], topic: str) -> None:
    """ValueError if rows with columns of these types are no records. TOPIC is that of all rows, or empty."""
    if "value" not in types:
        raise ValueError(f"there is no column value, only {', '.join(types) or 'none'}")
    for name, kind in types.items():
        if name in LEFT_OUT:
            continue
        if name not in WRITTEN:
            raise ValueError(f"the column {name} would not be written; records have {', '.join(WRITTEN)}")
        if kind not in WRITTEN[name]:
            raise ValueError(f"the column {name} is {kind}; it must be {' or '.join(WRITTEN[name])}")
    if not topic and "topic" not in types:
        raise ValueError("there is neither an option topic nor a column topic")


def only_written(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    return batch.select([name for name in batch.schema.names if name in WRITTEN])


def outgoing(batch: pyarrow.RecordBatch, topic: str) -> Iterator[Outgoing]:
    """ValueError for a row without a topic. The option TOPIC comes before the column, as for the connector."""
    count = batch.num_rows

    def column(name: str) -> list[object]:
        at = batch.schema.get_field_index(name)
        return [None] * count if at < 0 else batch.column(at).to_pylist()

    topics: list[object] = [topic] * count if topic else column("topic")
    values = (as_bytes(batch, "key"), as_bytes(batch, "value"), column("headers"), topics, column("partition"))
    for key, value, headers, to, partition in zip(*values, strict=True):
        if not to:
            raise ValueError("a row has no topic: its column topic is null or empty")
        yield Outgoing(to, partition, key, value, read_headers(headers))  # type: ignore[arg-type]


def as_bytes(batch: pyarrow.RecordBatch, name: str) -> list[bytes | None]:
    import pyarrow as pa

    at = batch.schema.get_field_index(name)
    if at < 0:
        return [None] * batch.num_rows
    column = batch.column(at)
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    found: list[bytes | None] = column.to_pylist()
    return found


def read_headers(found: object) -> Headers:
    if found is None:
        return ()
    assert isinstance(found, list)
    pairs = []
    for each in found:
        if each is None or each["key"] is None:
            raise ValueError("a header has no key: headers may hold no null, and neither may their keys")
        pairs.append((each["key"], each["value"]))
    return tuple(pairs)
