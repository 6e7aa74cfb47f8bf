"""Every record once and in order, read from brokers that move, break and delete."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import resolve_start
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import TopicPartition
from ixion.clients.reader import Reader
from ixion.clients.starts import parse_start
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from tests.clients.fake import FakeCluster, Fault

ORDERS = [TopicPartition("orders", number) for number in range(2)]


def fill(fakes: FakeCluster, place: TopicPartition, batches: int, size: int = 5) -> list[bytes | None]:
    log = fakes.logs[place]
    for _ in range(batches):
        builder = BatchBuilder()
        for number in range(size):
            builder.append(None, b"%d-%d" % (place.partition, log.end + number))
        assert log.append(builder.build())[0] == 0
    return log.values()


def read(reader: Reader, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[bytes | None]]:
    """All records until so many have come from each."""
    found: dict[TopicPartition, list[bytes | None]] = {place: [] for place in wanted}
    while any(len(found[place]) < count for place, count in wanted.items()):
        for fetched in reader.poll(5):
            found[fetched.partition] += [record.value for record in fetched.records()]
    return found


@pytest.mark.parametrize("version", [4, 12, ApiKey.FETCH.newest])
def test_partitions_are_read_from_their_leaders(version: int) -> None:
    newest = {ApiKey.FETCH: version}
    with FakeCluster(nodes=2, newest=newest) as fakes:
        fakes.add_topic("orders", leaders=[1, 2])
        expected = {place: fill(fakes, place, 4) for place in ORDERS}
        with Reader(fakes.bootstrap, dict.fromkeys(ORDERS, 0)) as reader:
            assert read(reader, dict.fromkeys(ORDERS, 20)) == expected
            assert reader.offsets == dict.fromkeys(ORDERS, 20)
            assert reader.poll(0.01) == []
            fill(fakes, ORDERS[1], 1)
            assert read(reader, {ORDERS[1]: 5})[ORDERS[1]] == fakes.logs[ORDERS[1]].values()[20:]


def test_an_offset_within_a_batch() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        values = fill(fakes, ORDERS[0], 2)
        with Reader(fakes.bootstrap, {ORDERS[0]: 3}) as reader:
            assert read(reader, {ORDERS[0]: 7})[ORDERS[0]] == values[3:]


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.HALF, Fault.WRONG_ID])
def test_a_connection_that_breaks_loses_and_doubles_nothing(fault: Fault) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        values = fill(fakes, ORDERS[0], 10)
        with Reader(fakes.bootstrap, {ORDERS[0]: 0}) as reader:
            found = read(reader, {ORDERS[0]: 5})[ORDERS[0]]
            fakes.at(1, ApiKey.FETCH, fault, fault)
            assert found + read(reader, {ORDERS[0]: 50 - len(found)})[ORDERS[0]] == values
            assert not fakes.nodes[1].script[ApiKey.FETCH]


def test_a_leader_that_moves_is_followed() -> None:
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 4)
        with Reader(fakes.bootstrap, {ORDERS[0]: 0}) as reader:
            found = read(reader, {ORDERS[0]: 20})[ORDERS[0]]
            fakes.leaders["orders"] = [2]
            values = fill(fakes, ORDERS[0], 4)
            assert found + read(reader, {ORDERS[0]: 20})[ORDERS[0]] == values
        assert {node for node, api, _ in fakes.seen if api == ApiKey.FETCH} == {1, 2}


def test_retention_may_overtake_the_reader() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        values = fill(fakes, ORDERS[0], 4)
        fakes.logs[ORDERS[0]].start = 10
        with Reader(fakes.bootstrap, {ORDERS[0]: 0}) as reader:
            assert read(reader, {ORDERS[0]: 10})[ORDERS[0]] == values[10:]
            assert reader.missed == 10


def test_an_offset_beyond_the_end_is_refused() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 1)
        with Reader(fakes.bootstrap, {ORDERS[0]: 6}) as reader:
            with pytest.raises(KafkaError, match="orders-0 ends at offset 5, before 6") as caught:
                reader.poll(5)
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_deleted_topic_is_reported() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with (
            Reader(fakes.bootstrap, {TopicPartition("gone", 0): 0}) as reader,
            pytest.raises(UnknownTopicError, match="there is no topic 'gone'"),
        ):
            reader.poll(5)


def test_a_broken_batch_is_not_handed_over() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 1)
        log = fakes.logs[ORDERS[0]]
        log.batches[0] = log.batches[0][:-1] + b"\x01"
        with Reader(fakes.bootstrap, {ORDERS[0]: 0}) as reader:
            (fetched,) = reader.poll(5)
            with pytest.raises(KafkaError, match="the batch at offset 0 has a wrong checksum"):
                list(fetched.records())


@pytest.mark.parametrize(
    ("text", "offset"), [("earliest", 4), ("latest", 20), ("0", 4), ("7", 7), ("99", 20), ("-3", 17), ("-50", 4)]
)
def test_a_start_offset_is_within_the_log(text: str, offset: int) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 4)
        fakes.logs[ORDERS[0]].start = 4
        with AdminRunner(fakes.bootstrap) as admin:
            found = admin.run(resolve_start, ORDERS[:1], parse_start(text))
        assert found == {ORDERS[0]: offset}


def test_a_partition_without_a_leader_does_not_hold_up_the_others() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[-1, 1])
        values = {place: fill(fakes, place, 2) for place in ORDERS}
        with Reader(fakes.bootstrap, dict.fromkeys(ORDERS, 0)) as reader:
            assert read(reader, {ORDERS[1]: 10})[ORDERS[1]] == values[ORDERS[1]]
            fakes.leaders["orders"] = [1, 1]
            assert read(reader, {ORDERS[0]: 10})[ORDERS[0]] == values[ORDERS[0]]


def test_trouble_is_reported_and_passes() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[-1])
        values = fill(fakes, ORDERS[0], 1)
        with Reader(fakes.bootstrap, {ORDERS[0]: 0}) as reader:
            end_s = time.monotonic() + 60
            while (trouble := reader.trouble) is None:
                assert reader.poll(0.05) == []
                assert time.monotonic() < end_s, "no trouble is named"
            since_s = reader.trouble_since_s
            assert trouble.message == "orders-0 has no leader at the moment"
            assert reader.poll(0.05) == []
            assert reader.trouble_since_s == since_s
            fakes.leaders["orders"] = [1]
            assert read(reader, {ORDERS[0]: 5})[ORDERS[0]] == values
            assert reader.trouble is None


def test_partitions_may_be_added() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1, 1])
        values = {place: fill(fakes, place, 2) for place in ORDERS}
        with Reader(fakes.bootstrap, {ORDERS[0]: 0}) as reader:
            assert read(reader, {ORDERS[0]: 10})[ORDERS[0]] == values[ORDERS[0]]
            reader.add(ORDERS[1], 4)
            assert read(reader, {ORDERS[1]: 6})[ORDERS[1]] == values[ORDERS[1]][4:]
    with pytest.raises(ValueError, match="no partitions to read"):
        Reader("127.0.0.1:9092", {})
