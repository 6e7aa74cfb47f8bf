"""The pages of a broker that works: the values move with the traffic, and health is what the disks are."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing import Broker
from tests.web.prometheus import Key, parse, value


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(metrics=True) as running:
        running.create_topic("t", 2)
        yield running


def look(broker: Broker) -> dict[Key, float]:
    with urllib.request.urlopen(broker.metrics_url, timeout=30) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parse(answer.read().decode())


def health(broker: Broker) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(broker.metrics_url.replace("/metrics", "/healthz"), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_values_move_with_the_traffic(broker: Broker) -> None:
    before = look(broker)
    assert value(before, "ixion_connections", listener="PLAINTEXT") == 0
    assert value(before, "ixion_log_end_offset", topic="t", partition=0) == 0
    assert ("ixion_request_seconds_count", frozenset({("api", "Produce")})) not in before

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for _ in range(5):
        producer.produce("t", b"x" * 100, partition=0)
        assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    assert len(consumer.consume(5, timeout=30)) == 5

    after = look(broker)
    assert value(after, "ixion_connections", listener="PLAINTEXT") >= 2
    assert value(after, "ixion_messages_in_total") == 5
    assert value(after, "ixion_bytes_in_total") > 500
    assert value(after, "ixion_bytes_out_total") > 500
    assert value(after, "ixion_log_end_offset", topic="t", partition=0) == 5
    assert value(after, "ixion_high_watermark", topic="t", partition=0) == 5
    assert value(after, "ixion_log_end_offset", topic="t", partition=1) == 0
    assert value(after, "ixion_log_size_bytes", topic="t", partition=0) == value(after, "ixion_bytes_in_total")
    assert value(after, "ixion_request_seconds_count", api="Produce") == 5
    assert value(after, "ixion_request_seconds_sum", api="Produce") > 0
    assert value(after, "ixion_request_seconds_count", api="Fetch") >= 1
    assert value(after, "ixion_requests_total") > value(before, "ixion_requests_total")
    assert value(after, "ixion_network_bytes_total", direction="in") > 500
    assert value(after, "ixion_timer_tasks_total", what="added") > value(
        before, "ixion_timer_tasks_total", what="added"
    )
    assert value(after, "process_resident_memory_bytes") > 1 << 20
    assert value(after, "ixion_leaders") >= 2
    assert value(after, "ixion_under_replicated_partitions") == 0
    for purgatory in ("Produce", "Fetch", "DeleteRecords", "ElectLeader"):
        for family in ("delayed", "watched", "keys"):
            assert ("ixion_purgatory_" + family, frozenset({("purgatory", purgatory)})) in after
    consumer.close()


def test_groups_transactions_and_errors_are_counted(broker: Broker) -> None:
    before = look(broker)
    assert not [name for name, _ in before if name in ("ixion_groups", "ixion_transactions")]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "linger.ms": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", b"x", partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.05)
    open_one = look(broker)
    assert value(open_one, "ixion_groups", state="Stable") == 1
    assert value(open_one, "ixion_transactions", state="ongoing") == 1
    producer.commit_transaction(30)
    assert value(look(broker), "ixion_transactions", state="complete_commit") == 1
    consumer.close()

    small = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 8 << 20})
    small.produce("t", b"x" * (4 << 20))
    small.flush(30)
    assert value(look(broker), "ixion_failed_produces_total", error="MESSAGE_TOO_LARGE") == 1


def test_a_fetch_that_waits_is_seen_in_its_purgatory(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g", "fetch.wait.max.ms": 30_000}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("t", 0, 0)])
    while value(look(broker), "ixion_purgatory_delayed", purgatory="Fetch") < 1:
        consumer.poll(0.05)
    consumer.close()


def test_a_stranger_is_counted(broker: Broker) -> None:
    with pytest.raises(OSError, match=r".*"):
        urllib.request.urlopen(f"http://{broker.bootstrap}/", timeout=30)
    closed = {
        dict(labels)["reason"]: count
        for (name, labels), count in look(broker).items()
        if name == "ixion_connections_closed_total"
    }
    assert sum(closed.values()) == 1


def test_health_follows_the_disks(broker: Broker) -> None:
    assert health(broker) == (200, "ok\n")

    async def fill(real: RealBroker) -> None:
        real.parts.logs.directories[0].state.full = True

    broker.call(fill)
    code, said = health(broker)
    assert code == 503
    assert "is full" in said

    async def fail(real: RealBroker) -> None:
        state = real.parts.logs.directories[0].state
        state.full = False
        state.offline = True
        state.reason = "the disk burns"

    broker.call(fail)
    code, said = health(broker)
    assert code == 503
    assert "the disk burns" in said


def test_there_is_an_index(broker: Broker) -> None:
    with urllib.request.urlopen(broker.metrics_url.removesuffix("metrics"), timeout=30) as answer:
        assert "/healthz" in answer.read().decode()


def test_there_are_none_unless_asked_for() -> None:
    with Broker() as broker, pytest.raises(RuntimeError, match="metrics=True"):
        assert broker.metrics_url
