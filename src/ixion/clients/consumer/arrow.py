"""Columns of records as Arrow, with the names and types of Spark's Kafka connector.

    key binary, value binary, topic string, partition int32, offset int64, timestamp timestamp[ms, UTC],
    timestampType int32, headers list<struct<key: string, value: binary>>

The buffers of the columns are passed on, not copied, except that keys and values are gathered from the fetch they came
in; the topic and partition columns are created here. As with the connector, a record without headers has null for them.
pyarrow is an extra (``pip install pyarrow``), imported by
the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.clients.metadata import TopicPartition
from ixion.language.records.columns import BinaryColumn, Columns

if TYPE_CHECKING:
    import pyarrow


def arrow_schema(*, headers: bool = True) -> pyarrow.Schema:
    import pyarrow as pa

    fields = [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
    return pa.schema([*fields, ("headers", header_type())] if headers else fields)


def header_type() -> pyarrow.DataType:
    import pyarrow as pa

    return pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def to_arrow(place: TopicPartition, columns: Columns, *, headers: bool = True) -> pyarrow.RecordBatch:
    """The rows as a record batch; `headers` says whether it has that column."""
    import pyarrow as pa

    schema = arrow_schema(headers=headers)
    count = len(columns)

    def numbers(name: str, data: bytes) -> pyarrow.Array:
        return pa.Array.from_buffers(schema.field(name).type, count, [None, pa.py_buffer(data)], 0)

    arrays = [
        binary(pa.binary(), columns.keys),
        binary(pa.binary(), columns.values),
        pa.repeat(pa.scalar(place.topic, pa.string()), count),
        pa.repeat(pa.scalar(place.partition, pa.int32()), count),
        numbers("offset", columns.offset_data),
        numbers("timestamp", columns.timestamp_data),
        numbers("timestampType", columns.timestamp_type_data),
    ]
    if headers:
        arrays.append(header_lists(columns))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def binary(kind: pyarrow.DataType, column: BinaryColumn) -> pyarrow.Array:
    import pyarrow as pa

    count = len(column)
    validity = pa.py_buffer(column.validity) if column.null_count else None
    spans, source = pa.py_buffer(column.spans), pa.py_buffer(column.source)
    if not column.is_dense:
        # Row, gap, row, …: to Arrow the gaps between the rows are elements too, which `take` leaves out.
        rows = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, spans, source], 0).take(even_numbers(count))
        _, spans, source = rows.buffers()
    return pa.Array.from_buffers(kind, count, [validity, spans, source], column.null_count)


def even_numbers(count: int) -> pyarrow.Array:
    """0, 2, 4, … The longest that was asked for is kept: there are at most as many as rows in columns."""
    import pyarrow as pa

    global _even
    if len(_even) < count:
        _even = pa.array(range(0, 2 * count, 2), pa.int32())
    return _even[:count]


_even: pyarrow.Array | tuple[()] = ()


def header_lists(columns: Columns) -> pyarrow.Array:
    import pyarrow as pa

    kind = header_type()
    count = len(columns)
    if len(columns.header_keys) == 0:
        return pa.nulls(count, kind)
    import pyarrow.compute as pc

    pairs = pa.StructArray.from_arrays(
        [binary(pa.string(), columns.header_keys), binary(pa.binary(), columns.header_values)],
        fields=list(kind.value_type),
    )
    ends = pa.Array.from_buffers(pa.int32(), count + 1, [None, pa.py_buffer(columns.header_ends)], 0)
    return pa.ListArray.from_arrays(ends, pairs, type=kind, mask=pc.equal(ends[1:], ends[:-1]))
