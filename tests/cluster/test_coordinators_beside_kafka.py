"""Coordinators that move between Apache Kafka and ixion with the partitions of their topics."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.broker.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from ixion.language.model.placement import partition_of
from tests.cluster.mixed import IXION, KAFKA, PATIENCE_S, SETTINGS, Mixed, wait_until
from tests.names import drawn

TEXT = "txt"


@pytest.fixture(scope="module")
def places(mixed: Mixed) -> Mixed:
    """Partition 0 of each internal topic, and of topic txt, is led by Apache Kafka, partition 1 by ixion. The internal
    topics have a third partition, led by Apache Kafka."""
    mixed.create(TEXT, (KAFKA, IXION), (IXION, KAFKA))
    mixed.prefer(GROUP_OFFSETS, TRANSACTION_STATE)
    return mixed


def named(prefix: str, partition: int) -> str:
    """A drawn group or transactional id whose coordinator leads that partition, as Kafka counts."""
    count = int(SETTINGS["offsets.topic.num.partitions"])
    while True:
        name = drawn(prefix)
        if partition_of(name, count) == partition:
            return name


def consumer_of(mixed: Mixed, group: str, **settings: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": mixed.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def read_values(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []

    def enough() -> bool:
        found.extend(message.value() or b"" for message in consumer.consume(100, 0.2) if message.error() is None)
        return len(found) >= count

    wait_until(enough, lambda: f"{len(found)} of {count} read")
    return found


def produce(mixed: Mixed, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": mixed.bootstrap, "acks": "all", "log_level": 0})
    for number, value in enumerate(values):
        producer.produce(TEXT, value, partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize("coordinator", [KAFKA, IXION])
@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_a_transaction_spans_leaders_on_both(places: Mixed, coordinator: int, outcome: str) -> None:
    name = named(f"txn-{outcome}-", 0 if coordinator == KAFKA else 1)
    producer = Producer(
        {
            "bootstrap.servers": places.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 30_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    reader = consumer_of(places, f"reader-{name}", isolation_level="read_committed")
    reader.assign([TopicPartition(TEXT, number, end_of(places, number)) for number in range(2)])
    for turn in range(3):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(TEXT, f"{name}-{turn}-{partition}".encode(), partition=partition)
        if outcome == "commit" or turn == 2:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    expected = {f"{name}-{turn}-{part}" for turn in range(3) for part in range(2) if outcome == "commit" or turn == 2}
    assert {value.decode() for value in read_values(reader, len(expected))} == expected
    reader.close()
    for partition in range(2):
        places.await_equal_logs(TEXT, partition)


def end_of(mixed: Mixed, partition: int) -> int:
    consumer = consumer_of(mixed, "ends")
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TEXT, partition), timeout=PATIENCE_S)[1])
    finally:
        consumer.close()


@pytest.mark.parametrize("coordinator", [KAFKA, IXION])
def test_offsets_of_a_group_are_committed_on_either_and_found_by_the_other(places: Mixed, coordinator: int) -> None:
    group = named(f"group-{coordinator}-", 0 if coordinator == KAFKA else 1)
    values = [f"{group}-{number}".encode() for number in range(20)]
    produce(places, values)
    consumer = consumer_of(places, group)
    consumer.subscribe([TEXT])
    seen: set[bytes] = set()

    def all_seen() -> bool:
        seen.update(message.value() or b"" for message in consumer.consume(100, 0.2) if message.error() is None)
        return seen.issuperset(values)

    wait_until(all_seen, lambda: f"{len(seen)} read")
    consumer.commit(asynchronous=False)
    committed = [each.offset for each in consumer.committed([TopicPartition(TEXT, n) for n in range(2)], PATIENCE_S)]
    consumer.close()
    assert min(committed) > 0
    places.await_isr(GROUP_OFFSETS, 2)
    if coordinator == IXION:  # its leader moves to the other broker
        places.ixion.stop()
    else:
        places.kafka.stop()
    again = consumer_of(places, group)
    found = [each.offset for each in again.committed([TopicPartition(TEXT, n) for n in range(2)], PATIENCE_S)]
    again.close()
    assert found == committed
    (places.ixion if coordinator == IXION else places.kafka).start()
    places.prefer(GROUP_OFFSETS, TRANSACTION_STATE, TEXT)
