"""Batches of a stream are limited where Spark can do it: from 4.2 on. Here stands in what these versions bring."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from ixion.clients import Admin, Producer
from ixion.spark import source  # noqa: F401 - while the installed Spark says what it has
from ixion.spark.options import read_options
from ixion.testing import Broker

NAME = "pyspark.sql.streaming.datasource"


class ReadLimit: ...


@dataclass
class ReadAllAvailable(ReadLimit): ...


@dataclass
class ReadMaxRows(ReadLimit):
    max_rows: int


class SupportsTriggerAvailableNow: ...


@pytest.fixture
def reader_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = ModuleType(NAME)
    for each in (ReadLimit, ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow):
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, NAME, module)
    sys.modules.pop("ixion.spark.admission", None)
    yield import_module("ixion.spark.admission").LimitedStreamReader
    sys.modules.pop("ixion.spark.admission", None)


def fill(broker: Broker, count: int, partition: int) -> None:
    with Producer(broker.bootstrap) as producer:
        for number in range(count):
            producer.send("in", b"%d" % number, partition=partition)


def batches(reader: Any, start: dict[str, Any]) -> list[dict[str, int]]:
    """The ends of all batches until there is nothing more, as Spark asks for them."""
    found = []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        found.append(end["in"])
        start = end
    return found


def test_batches_are_limited_and_end_where_the_query_began(ixion_broker: Broker, reader_of: Any) -> None:
    ixion_broker.create_topic("in", partitions=2)
    fill(ixion_broker, 30, 0)
    fill(ixion_broker, 10, 1)
    given = {"kafka.bootstrap.servers": ixion_broker.bootstrap, "subscribe": "in", "startingOffsets": "earliest"}
    reader = reader_of(read_options({**given, "maxOffsetsPerTrigger": "16"}))
    reader.prepareForTriggerAvailableNow()
    fill(ixion_broker, 5, 1)  # too late for this query
    start = reader.initialOffset()
    assert batches(reader, start) == [{"0": 12, "1": 4}, {"0": 24, "1": 8}, {"0": 30, "1": 10}]
    assert reader.reportLatestOffset() == {"in": {"0": 30, "1": 15}}
    assert reader.latestOffset(start, ReadAllAvailable()) == {"in": {"0": 30, "1": 10}}
    unlimited = reader_of(read_options(given))
    assert batches(unlimited, start) == [{"0": 30, "1": 15}]


def test_a_new_partition_is_limited_from_its_beginning(ixion_broker: Broker, reader_of: Any) -> None:
    ixion_broker.create_topic("in", partitions=1)
    given = {"kafka.bootstrap.servers": ixion_broker.bootstrap, "subscribe": "in", "startingOffsets": "earliest"}
    reader = reader_of(read_options({**given, "maxOffsetsPerTrigger": "4"}))
    start = reader.initialOffset()
    with Admin(ixion_broker.bootstrap) as admin:
        from ixion.clients.admin.topics import NewPartitions

        admin.create_partitions({"in": NewPartitions(2)}).check()
    fill(ixion_broker, 6, 1)
    assert batches(reader, start) == [{"0": 0, "1": 4}, {"0": 0, "1": 6}]
