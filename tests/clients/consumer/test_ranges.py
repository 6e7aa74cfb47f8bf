"""Ranges of offsets: all of them, nothing else, and then no more requests."""

from __future__ import annotations

import pytest

from ixion.clients.consumer.ranges import Range, read_ranges
from ixion.clients.metadata import TopicPartition
from ixion.clients.reader import Reader
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault
from tests.clients.test_reader import ORDERS, fill


def offsets(bootstrap: str, ranges: dict[TopicPartition, Range]) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {place: [] for place in ranges}
    for place, columns in read_ranges(bootstrap, ranges, patience_s=0.1):
        found[place] += columns.offsets
    return found


def test_ranges_begin_and_end_inside_batches() -> None:
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[1, 2])
        for place in ORDERS:
            fill(fakes, place, 4)
        found = offsets(fakes.bootstrap, {ORDERS[0]: (3, 12), ORDERS[1]: (0, 20)})
        assert found == {ORDERS[0]: list(range(3, 12)), ORDERS[1]: list(range(20))}


def test_an_empty_range_asks_no_broker() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        assert offsets(fakes.bootstrap, {ORDERS[0]: (5, 5)}) == {ORDERS[0]: []}
        assert fakes.count(ApiKey.FETCH) == 0


def test_a_range_that_goes_on_beyond_the_end_is_given_up() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 1)
        with pytest.raises(
            KafkaError, match=r"orders-0: no record before the end of the range within 0\.1 s"
        ) as caught:
            offsets(fakes.bootstrap, {ORDERS[0]: (0, 9)})
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT


def test_what_retention_took_is_counted() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 2)
        fakes.logs[ORDERS[0]].start = 5
        missed: list[int] = []
        found = read_ranges(fakes.bootstrap, {ORDERS[0]: (2, 10)}, on_missed=missed.append)
        assert [offset for _, columns in found for offset in columns.offsets] == list(range(5, 10))
        assert missed == [3]


def test_a_partition_that_is_dropped_is_read_no_longer() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1, 1])
        for place in ORDERS:
            fill(fakes, place, 1)
        with Reader(fakes.bootstrap, dict.fromkeys(ORDERS, 0)) as reader:
            fakes.at(1, ApiKey.FETCH, Fault.DROP)  # the fetch of both is lost, and asked again for one
            reader.poll(0)
            reader.drop(ORDERS[0])
            found: list[TopicPartition] = []
            while not found:
                found = [fetched.partition for fetched in reader.poll(1.0)]
            found += [fetched.partition for fetched in reader.poll(0.1)]
            assert found == [ORDERS[1]]
            assert reader.offsets == {ORDERS[1]: 5}
