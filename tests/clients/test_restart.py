"""A broker that is stopped or killed and comes back: producer and reader go on, and nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.kafka import free_port
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.metadata import TopicPartition
from ixion.clients.producer import Producer
from ixion.clients.reader import Reader
from ixion.testing import Broker

PLACES = [TopicPartition("orders", number) for number in range(3)]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_producer_and_reader_outlive_a_broker(end: str, tmp_path: Path) -> None:
    broker = Broker({"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}, data=tmp_path)
    heard: list[Delivery] = []
    found: dict[TopicPartition, list[bytes | None]] = {place: [] for place in PLACES}
    expected: dict[TopicPartition, list[bytes | None]] = {place: [] for place in PLACES}
    with broker:
        broker.create_topic("orders", 3)
        with Reader(broker.bootstrap, dict.fromkeys(PLACES, 0), max_wait_ms=50) as reader:
            with Producer(broker.bootstrap, batch_size=300) as producer:
                for number in range(1500):
                    if number in (400, 900):
                        getattr(broker, end)()
                        broker.start()
                    place, value = PLACES[number % 3], b"%d" % number
                    producer.send("orders", value, partition=place.partition, on_delivery=heard.append)
                    expected[place].append(value)
                    if number % 100 == 0:
                        take(reader, found)
            while sum(map(len, found.values())) < 1500:
                take(reader, found)
    assert [delivery.error for delivery in heard] == [None] * 1500
    assert found == expected


def take(reader: Reader, found: dict[TopicPartition, list[bytes | None]]) -> None:
    for fetched in reader.poll(0.1):
        found[fetched.partition] += [record.value for record in fetched.records()]
