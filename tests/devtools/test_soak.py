"""The soak can fail: its clients and its judge against brokers that are broken on purpose. No process is killed here.

With the interpreted package only: a fault replaces functions of the broker, and compiled code calls its own.
"""

from __future__ import annotations

import asyncio
import random
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.history.checker import check
from devtools.history.copies import check_copies
from devtools.history.operation import read_history
from devtools.soak import copier, our_copier, our_reader, our_writer, reader, writer
from devtools.soak.broken import FAULTS
from devtools.soak.diary import Diary
from ixion.cli.main import build_kind
from ixion.clients import Admin
from ixion.clients import Consumer as OurConsumer
from ixion.clients import Producer as OurProducer
from ixion.clients import TopicPartition as Place
from ixion.clients.admin import topics
from ixion.testing import Broker

pytestmark = pytest.mark.skipif(
    build_kind() == "compiled", reason="a fault replaces functions, which compiled code does not see"
)
PARTITIONS = 3
TRANSACTIONS = 40


def live(bootstrap: str, histories: Path) -> set[str]:
    """Transactions are written, all that can be seen is copied and read; which anomalies are there?"""
    random.seed(4)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("written", "copied")]).values():
        future.result(10)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer", "linger.ms": 0, "log_level": 0})
    producer.init_transactions(10)
    diary, numbers = Diary(histories, "writer"), count()
    for _ in range(TRANSACTIONS):
        writer.transact(producer, diary, "written", PARTITIONS, numbers)
    copy_all(bootstrap, Diary(histories, "copier"))
    for topic in ("written", "copied"):
        reader.main(bootstrap, str(histories), f"reader of {topic}", topic, str(PARTITIONS), "--to-the-end")
    lines = [line for file in sorted(histories.iterdir()) for line in file.read_text().splitlines()]
    operations = list(read_history(lines))
    return {each.kind for each in [*check(operations), *check_copies(operations, "written", "copied")]}


def copy_all(bootstrap: str, diary: Diary) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "copiers",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition("written", number) for number in range(PARTITIONS)])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "copier", "linger.ms": 0, "log_level": 0})
    producer.init_transactions(10)
    at_the_end: set[int | None] = set()
    while len(at_the_end) < PARTITIONS:
        some = consumer.consume(5, 0.2)
        messages = [message for message in some if message.error() is None]
        at_the_end |= {message.partition() for message in some if message.error() is not None}
        if messages and not copier.copy_some(producer, consumer, diary, "copied", messages):
            at_the_end -= {message.partition() for message in messages}  # it went back
    consumer.close()


def test_a_sound_broker_shows_nothing(tmp_path: Path) -> None:
    with Broker() as broker:
        assert live(broker.bootstrap, tmp_path) == set()


@pytest.mark.parametrize("name", ["aborted-list", "markers", "aborted-offsets"])
def test_a_broken_broker_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    fault = FAULTS[name]
    fault.breaks(monkeypatch.setattr)
    with Broker() as broker:
        assert live(broker.bootstrap, tmp_path) & fault.shows_as


def live_with_ours(bootstrap: str, histories: Path) -> set[str]:
    """The same with our own clients: written, copied and read."""
    random.seed(4)
    with Admin(bootstrap) as admin:
        admin.create_topics([topics.NewTopic(name, PARTITIONS) for name in ("written", "copied")]).check()
    numbers = count()
    our_writer.write(bootstrap, "writer", Diary(histories, "writer"), "written", PARTITIONS, numbers, 20)
    diary = Diary(histories, "writer-asyncio")  # one process as well: its history comes behind the writer's
    asyncio.run(our_writer.write_on_asyncio(bootstrap, "asyncio", diary, "written", PARTITIONS, numbers, 5))
    diary = Diary(histories, "copier")
    places = [Place("written", number) for number in range(PARTITIONS)]
    with (
        OurProducer(bootstrap, transactional_id="copier") as producer,
        OurConsumer(
            bootstrap,
            group="copiers",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        producer.init_transactions()
        consumer.assign(places)
        while any(consumer.position(place) < end for place, end in consumer.end_offsets(places).items()):
            records = consumer.poll(1, 5)
            if records:
                our_copier.copy_some(producer, consumer, diary, "copied", records)
    for topic in ("written", "copied"):
        our_reader.main(bootstrap, str(histories), f"reader of {topic}", topic, str(PARTITIONS), "--to-the-end")
    lines = [line for file in sorted(histories.iterdir()) for line in file.read_text().splitlines()]
    operations = list(read_history(lines))
    assert sum(len(poll.records) for each in operations for poll in each.polls) > 20
    return {each.kind for each in [*check(operations), *check_copies(operations, "written", "copied")]}


def test_our_clients_find_nothing_at_a_sound_broker(tmp_path: Path) -> None:
    with Broker() as broker:
        assert live_with_ours(broker.bootstrap, tmp_path) == set()


def test_our_clients_find_a_broken_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS["aborted-list"]
    fault.breaks(monkeypatch.setattr)
    with Broker() as broker:
        assert live_with_ours(broker.bootstrap, tmp_path) & fault.shows_as
