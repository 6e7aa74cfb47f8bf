"""Options of `format("ixion")`: the connector's names and defaults; mistakes are named."""

from __future__ import annotations

import pytest

from ixion.clients.metadata import TopicPartition
from ixion.clients.starts import EARLIEST, LATEST
from ixion.spark.options import PARTITION_BYTES, Edge, Subscription, read_options

LEAST = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def test_defaults() -> None:
    found = read_options(LEAST)
    assert found.subscription == Subscription(topics=("orders",))
    assert (found.start, found.end) == (None, None)
    assert (found.headers, found.read_committed, found.fail_on_data_loss) == (False, False, True)
    assert (found.min_partitions, found.max_records_per_partition) == (0, 0)
    assert found.partition_bytes == PARTITION_BYTES


def test_the_size_of_a_fetch_is_kafkas_setting() -> None:
    assert read_options({**LEAST, "kafka.max.partition.fetch.bytes": "65536"}).partition_bytes == 65536


def test_names_count_in_any_case() -> None:
    assert read_options({**LEAST, "INCLUDEHEADERS": "True"}).headers


@pytest.mark.parametrize(
    ("name", "value", "edge"),
    [
        ("startingOffsets", "Earliest", Edge(EARLIEST)),
        ("startingOffsets", "latest", Edge(LATEST)),
        (
            "startingOffsets",
            '{"a": {"0": 5, "1": -2}}',
            Edge(offsets={TopicPartition("a", 0): 5, TopicPartition("a", 1): -2}),
        ),
        ("startingTimestamp", "1000", Edge(1000)),
        ("startingOffsetsByTimestamp", '{"a": {"0": 1000}}', Edge(times={TopicPartition("a", 0): 1000})),
    ],
)
def test_where_it_begins(name: str, value: str, edge: Edge) -> None:
    assert read_options({**LEAST, name: value}).start == edge


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"minPartitions": "0"}, "minPartitions is a whole number above 0, not '0'"),
        ({"minPartitions": "many"}, "minPartitions is a whole number above 0, not 'many'"),
        (
            {"kafka.max.partition.fetch.bytes": "4m"},
            "kafka.max.partition.fetch.bytes is a whole number above 0, not '4m'",
        ),
        ({"includeHeaders": "yes"}, "includeHeaders is true or false, not 'yes'"),
        ({"kafka.isolation.level": "none"}, "kafka.isolation.level is read_uncommitted or read_committed, not 'none'"),
        ({"startingOffsets": "first"}, "startingOffsets is neither a known word nor JSON: 'first'"),
        ({"startingOffsets": "[1]"}, "startingOffsets is a JSON object, not"),
        ({"startingOffsets": '{"a": 1}'}, "startingOffsets is JSON such as"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "startingOffsets has -3 for partition '0' of 'a'"),
        ({"startingOffsets": '{"a": {"x": 3}}'}, "startingOffsets has 3 for partition 'x' of 'a'"),
        ({"startingTimestamp": "noon"}, "startingTimestamp is a number of milliseconds, not 'noon'"),
        ({"assign": '{"a": [0]}'}, "exactly one of subscribe, subscribePattern, assign must be given, not 2"),
        ({"startingOfsets": "earliest"}, "has no option startingOfsets; did you mean startingOffsets?"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is a whole number above 0"),
        ({"kafka.ssl.key": "x"}, "of Kafka's own settings it takes kafka.bootstrap.servers, kafka.isolation.level"),
    ],
)
def test_mistakes(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_options({**LEAST, **given})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribe": "a"}, "the option kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "b:1", "subscribe": " , "}, "subscribe names no topic"),
        ({"kafka.bootstrap.servers": "b:1", "subscribePattern": "("}, "subscribePattern '(' is no regular expression"),
        ({"kafka.bootstrap.servers": "b:1", "assign": '{"a": 1}'}, "assign is JSON such as"),
    ],
)
def test_no_topics(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_options(given)
    assert said in str(caught.value)
