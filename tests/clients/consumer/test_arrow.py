"""Columns as Arrow: the connector's schema, the same rows, and the same memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ixion.clients.consumer.arrow import arrow_schema, to_arrow
from ixion.clients.metadata import TopicPartition
from ixion.language.records.batch import BatchView, TimestampType
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder, Headers
from ixion.language.records.columns import Columns, read_columns

PLACE = TopicPartition("orders", 3)
HEADERS: Headers = [("trace", b"1"), ("trace", None), ("", b"")]


def columns(headers: Headers = HEADERS, kind: TimestampType = TimestampType.CREATE_TIME) -> Columns:
    builder = BatchBuilder(base_offset=7, timestamp_type=kind)
    builder.append(b"a", b"one", headers, 1_000)
    builder.append(None, b"", (), 2_000)
    builder.append(b"", None, headers[:1], -1)
    (found,) = read_columns([BatchView(builder.build())])
    return found


def test_the_rows_are_those_of_the_connector() -> None:
    batch = to_arrow(PLACE, columns())
    batch.validate(full=True)
    assert batch.schema == arrow_schema()
    common = {"topic": "orders", "partition": 3, "timestampType": 0}
    trace = {"key": "trace", "value": b"1"}
    assert batch.to_pylist() == [
        {
            **common,
            "key": b"a",
            "value": b"one",
            "offset": 7,
            "timestamp": datetime.fromtimestamp(1, UTC),
            "headers": [trace, {"key": "trace", "value": None}, {"key": "", "value": b""}],
        },
        {
            **common,
            "key": None,
            "value": b"",
            "offset": 8,
            "timestamp": datetime.fromtimestamp(2, UTC),
            "headers": None,
        },
        {
            **common,
            "key": b"",
            "value": None,
            "offset": 9,
            "timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
            "headers": [trace],
        },
    ]


def test_log_append_time() -> None:
    batch = to_arrow(PLACE, columns(kind=TimestampType.LOG_APPEND_TIME))
    assert batch.column("timestampType").to_pylist() == [1, 1, 1]
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [2_000] * 3


def test_no_record_has_headers() -> None:
    batch = to_arrow(PLACE, columns(headers=[]))
    batch.validate(full=True)
    assert batch.column("headers").to_pylist() == [None] * 3


def test_headers_are_left_out_on_request() -> None:
    batch = to_arrow(PLACE, columns(), headers=False)
    assert batch.schema == arrow_schema(headers=False)
    assert "headers" not in batch.schema.names


@pytest.mark.parametrize("name", ["key", "value", "offset", "timestamp"])
def test_the_buffers_are_handed_over_and_not_copied(name: str) -> None:
    found = columns()
    data = {
        "key": found.keys.data,
        "value": found.values.data,
        "offset": found.offset_data,
        "timestamp": found.timestamp_data,
    }[name]
    assert to_arrow(PLACE, found).column(name).buffers()[-1].address == pa.py_buffer(data).address


def test_rows_are_gathered_from_the_fetch_they_came_in() -> None:
    rows = [(b"k", b"v" * 1_000), (None, b""), (b"", None), (b"key", b"\xff\x00"), (None, None)] * 20
    for count in (1, 2, 7, len(rows)):
        made = b""
        for base in range(0, count, 4):
            builder = BatchBuilder(base_offset=base)
            for key, value in rows[base : min(base + 4, count)]:
                builder.append(key, value, HEADERS if base % 8 else (), 1_000)
            made += builder.build()
        (found,) = read_columns(iter_batches(made))
        assert not found.values.is_dense
        batch = to_arrow(PLACE, found)
        assert not found.values.is_dense  # gathered by Arrow, into its own memory
        batch.validate(full=True)
        assert batch.column("key").to_pylist() == [key for key, _ in rows[:count]]
        assert batch.column("value").to_pylist() == [value for _, value in rows[:count]]
        assert batch.column("value").null_count == sum(value is None for _, value in rows[:count])
        found.keys.data, found.values.data  # noqa: B018
        assert to_arrow(PLACE, found).equals(batch)
