"""Which frames can be written into a topic, and the records that their rows become; mistakes are named."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ixion.spark.outgoing import Outgoing, check_columns, only_written, outgoing
from ixion.spark.sink_options import BATCHES_TOPIC, read_sink_options

LEAST = {"kafka.bootstrap.servers": "127.0.0.1:9092", "topic": "out"}


def types(ddl: str) -> dict[str, str]:
    """By column; a semicolon stands for a comma inside of a type."""
    return {name: kind.replace(";", ",") for name, kind in (each.split(" ", 1) for each in ddl.split(", "))}


@pytest.mark.parametrize(
    ("ddl", "topic", "said"),
    [
        ("key string", "t", "there is no column value, only key"),
        ("value int", "t", "the column value is int; it must be string or binary"),
        ("value string, amount double", "t", "the column amount would not be written"),
        ("value string, partition bigint", "t", "the column partition is bigint; it must be int"),
        ("value string, headers map<string;binary>", "t", "the column headers is map<string,binary>"),
        ("value string", "", "neither an option topic nor a column topic"),
    ],
)
def test_frames_that_are_no_records_are_refused(ddl: str, topic: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_columns(types(ddl), topic)


def test_a_frame_that_was_read_can_be_written() -> None:
    ddl = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    check_columns(types(ddl), "")
    check_columns(types("value string, headers array<struct<key:string;value:binary>>"), "t")


def test_rows_become_records() -> None:
    headers = [[{"key": "a", "value": b"1"}, {"key": "b", "value": None}], None]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    columns = {
        "key": pa.array(["k", None], pa.large_string()),
        "value": pa.array([None, "é"]),
        "headers": pa.array(headers, kind),
        "topic": pa.array(["x", "y"]),
        "partition": pa.array([None, 1], pa.int32()),
        "offset": pa.array([5, 6]),
    }
    batch = only_written(pa.record_batch(list(columns.values()), names=list(columns)))
    first = Outgoing("x", None, b"k", None, (("a", b"1"), ("b", None)))
    assert list(outgoing(batch, "")) == [first, Outgoing("y", 1, None, "é".encode(), ())]
    assert [each.topic for each in outgoing(batch, "all")] == ["all", "all"]


def test_rows_without_a_topic_and_headers_without_a_key_are_refused() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch([pa.array(["v"]), pa.array([None], pa.string())], names=["value", "topic"])
    with pytest.raises(ValueError, match="a row has no topic"):
        list(outgoing(batch, ""))
    batch = pa.record_batch([pa.array(["v"]), pa.array([[{"key": None, "value": b""}]], kind)], ["value", "headers"])
    with pytest.raises(ValueError, match="a header has no key"):
        list(outgoing(batch, "t"))


def test_defaults() -> None:
    found = read_sink_options({**LEAST, "checkpointlocation": "/tmp/c"})
    assert (found.exactly_once, found.batches_topic, found.first_batch) == (True, BATCHES_TOPIC, None)
    assert found.client == {"client_id": "ixion-spark"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topics": "a"}, "has no option topics; did you mean topic?"),
        ({"delivery": "twice"}, "delivery is 'twice'; allowed are exactly-once, at-least-once"),
        ({"txnAppId": "a"}, "txnAppId and txnVersion need each other"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "txnVersion is a whole number from 0 on, not '-1'"),
        ({"kafka.compression.type": "zip"}, "kafka.compression.type is 'zip'"),
        ({"kafka.acks": "1"}, "has no option kafka.acks"),
        ({"kafka.security.protocol": "TLS"}, "security_protocol is 'TLS'"),
    ],
)
def test_mistakes_are_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_sink_options({**LEAST, **options})
