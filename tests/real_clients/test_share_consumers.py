"""The share consumers of librdkafka (by confluent-kafka) and of Java against a broker."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from devtools.jvm import QUICK, java_command
from devtools.parts import need
from ixion.testing import Broker

COUNT = 2_000
PATIENCE_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.share.min.record.lock.duration.ms": 1_000}) as running:
        yield running


def configure(broker: Broker, group: str, **settings: object) -> None:
    given = {"share_auto_offset_reset": "earliest", **settings}
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in given.items()
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(20)


def fill(broker: Broker, topic: str, count: int, partitions: int = 1) -> None:
    broker.create_topic(topic, partitions)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
    assert producer.flush(30) == 0


def member(broker: Broker, group: str, topic: str, explicit: bool = False) -> ShareConsumer:
    mode = "explicit" if explicit else "implicit"
    consumer = ShareConsumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "share.acknowledgement.mode": mode}
    )
    consumer.subscribe([topic])
    return consumer


def polled(consumer: ShareConsumer) -> list[Message]:
    messages = consumer.poll(0.5)
    assert [message.error() for message in messages if message.error()] == []
    return list(messages)


def value_of(message: Message) -> bytes:
    value = message.value()
    assert value is not None
    return value


def until(consumer: ShareConsumer, count: int) -> list[Message]:
    got: list[Message] = []
    until_s = time.monotonic() + PATIENCE_S
    while len(got) < count:
        assert time.monotonic() < until_s, f"{len(got)} of {count}"
        got += polled(consumer)
    return got


def test_members_share_the_records_of_one_partition(broker: Broker) -> None:
    configure(broker, "shared")
    fill(broker, "shared", COUNT)
    got: list[Counter[bytes]] = [Counter() for _ in range(3)]
    over = threading.Event()

    def work(mine: Counter[bytes]) -> None:
        with member(broker, "shared", "shared") as consumer:
            while not over.is_set():
                mine.update(value_of(message) for message in polled(consumer))
                if sum(sum(each.values()) for each in got) >= COUNT:
                    over.set()
            polled(consumer)  # accepts the last ones

    threads = [threading.Thread(target=work, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    every = sum(got, Counter())
    assert set(every) == {b"%d" % number for number in range(COUNT)}
    assert set(every.values()) == {1}


def test_each_record_gets_its_own_verdict(broker: Broker) -> None:
    configure(broker, "verdicts")
    fill(broker, "verdicts", 30)
    deliveries: Counter[bytes] = Counter()
    kinds = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
    with member(broker, "verdicts", "verdicts", explicit=True) as consumer:
        until_s = time.monotonic() + PATIENCE_S
        while len(deliveries) < 30 or sum(deliveries.values()) < 40:
            assert time.monotonic() < until_s, deliveries
            for message in polled(consumer):
                deliveries[value_of(message)] += 1
                first = deliveries[value_of(message)] == 1
                consumer.acknowledge(message, kinds[int(value_of(message)) % 3] if first else AcknowledgeType.ACCEPT)
            consumer.commit_sync(10)
        assert polled(consumer) == []
    assert deliveries == {b"%d" % number: 2 if number % 3 == 1 else 1 for number in range(30)}


def test_the_records_of_a_member_that_closes_go_to_another(broker: Broker) -> None:
    configure(broker, "closing")
    fill(broker, "closing", 100)
    one = member(broker, "closing", "closing", explicit=True)
    assert len(until(one, 100)) == 100
    one.close()
    with member(broker, "closing", "closing") as other:
        assert len({value_of(message) for message in until(other, 100)}) == 100


def test_a_backoff_counts_for_a_client_that_does_not_know_it(broker: Broker) -> None:
    configure(broker, "backoff", share_redelivery_backoff_ms=1_500, share_redelivery_backoff_jitter=0)
    fill(broker, "backoff", 1)
    with member(broker, "backoff", "backoff", explicit=True) as consumer:
        (message,) = until(consumer, 1)
        released_s = time.monotonic()
        consumer.acknowledge(message, AcknowledgeType.RELEASE)
        consumer.commit_sync(10)
        (message,) = until(consumer, 1)
        assert time.monotonic() - released_s >= 1.5, "never early"
        consumer.acknowledge(message)
        consumer.commit_sync(10)


@pytest.mark.skipif(os.environ.get("IXION_EXPECT") == "interpreted", reason="a JVM takes seconds: once is enough")
def test_the_console_share_consumer_of_kafka(broker: Broker) -> None:
    configure(broker, "console")
    fill(broker, "console", 500, partitions=2)
    words = ["--topic", "console", "--group", "console", "--max-messages", "500", "--timeout-ms", "60000"]
    done = subprocess.run(
        [
            *java_command(
                "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
                classpath=str(need("kafka-4.3.0")),
                options=["-Xmx256m", *QUICK],
            ),
            *("--bootstrap-server", broker.bootstrap, *words),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert sorted(map(int, done.stdout.split())) == list(range(500))
