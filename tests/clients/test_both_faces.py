"""One table of scenarios through both faces: what a user sees is the same, with the same bounds on waiting.

A bound is a timeout of the call itself, far beyond what the call needs, and below the next heartbeat: a face that
sleeps until a timer although an answer has arrived fails here.
"""

from __future__ import annotations

import itertools
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.clients import Producer, TopicPartition
from ixion.clients.faults import TimedOutError, UnknownTopicError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.testing import Broker
from tests.clients.faces import FACES, Face

WAIT_S = 45.0  # on a busy machine
BEAT_MS = 120_000  # nothing that is done from time to time wakes anybody meanwhile
CALM: dict[str, Any] = {
    "heartbeat_interval_ms": BEAT_MS,
    "session_timeout_ms": 3 * BEAT_MS,
    "auto_commit_interval_ms": BEAT_MS,
}
GROUPS: dict[str, dict[str, Any]] = {
    "classic": CALM,
    "cooperative": CALM | {"partition_assignment_strategy": ["cooperative-sticky"]},
    "consumer": CALM | {"group_protocol": "consumer"},
}
numbers = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "group.max.session.timeout.ms": str(10 * BEAT_MS),
        "group.consumer.heartbeat.interval.ms": str(BEAT_MS),
        "group.consumer.max.heartbeat.interval.ms": str(BEAT_MS),
        "group.consumer.session.timeout.ms": str(3 * BEAT_MS),
        "group.consumer.max.session.timeout.ms": str(3 * BEAT_MS),
        "auto.create.topics.enable": "false",
    }
    with Broker(settings) as running:
        yield running


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def face(request: pytest.FixtureRequest) -> Face:
    found: Face = request.param
    return found


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"faces-{next(numbers)}"
    broker.create_topic(name, 2)
    return name


def send(broker: Broker, topic: str, *values: bytes) -> None:
    with Producer(broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value, partition=0)


@pytest.mark.parametrize("kind", GROUPS)
def test_the_first_record_of_a_group_needs_no_heartbeat(broker: Broker, topic: str, face: Face, kind: str) -> None:
    send(broker, topic, b"first")
    with face.consumer(
        broker.bootstrap, group=topic, topics=[topic], auto_offset_reset="earliest", **GROUPS[kind]
    ) as consumer:
        assert [record.value for record in consumer.poll(WAIT_S)] == [b"first"]


@pytest.mark.parametrize("kind", GROUPS)
def test_a_record_that_is_sent_after_the_poll_began_arrives(broker: Broker, topic: str, face: Face, kind: str) -> None:
    """`latest`, the default: the end of the log is looked up as soon as the group has no offset."""
    with face.consumer(broker.bootstrap, group=topic, topics=[topic], **GROUPS[kind]) as consumer:
        while not consumer.assignment():
            consumer.poll(0.1)
        assert consumer.position(TopicPartition(topic, 0)) == 0
        polling = consumer.start("poll", WAIT_S)
        send(broker, topic, b"later")
        assert [record.value for record in polling.result()] == [b"later"]


@pytest.mark.parametrize("kind", ["classic", "cooperative"])  # with the third, the next heartbeat brings it
@pytest.mark.parametrize("creates", [True, False])
def test_a_topic_that_is_created_later_is_read(
    broker: Broker, topic: str, face: Face, kind: str, creates: bool
) -> None:
    later = f"{topic}-later"
    with face.consumer(
        broker.bootstrap,
        group=topic,
        topics=[later],
        auto_offset_reset="earliest",
        allow_auto_create_topics=creates,
        **GROUPS[kind],
    ) as consumer:
        assert consumer.poll(0.5) == []
        broker.create_topic(later, 1)
        send(broker, later, b"value")
        assert [record.value for record in consumer.poll(WAIT_S)] == [b"value"]


@pytest.mark.parametrize("kind", GROUPS)
def test_a_compiled_pattern_may_stand_in_place_of_the_topics(broker: Broker, topic: str, face: Face, kind: str) -> None:
    send(broker, topic, b"matched")
    with face.consumer(broker.bootstrap, group=topic, auto_offset_reset="earliest", **GROUPS[kind]) as consumer:
        consumer.subscribe(re.compile(re.escape(topic)))
        assert [record.value for record in consumer.poll(WAIT_S)] == [b"matched"]


def test_a_missing_topic_holds_up_no_other(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(broker.bootstrap, max_block_ms=3_600_000) as producer:
        waiting = producer.start("send", f"missing-{topic}", b"value")
        while not producer.client._machine.turns:
            threading.Event().wait(0.005)  # until it waits
        for _ in range(3):
            delivery = producer.start("send", topic, b"value", partition=0).result(WAIT_S)
            producer.wait(delivery, WAIT_S)
        assert not waiting.done()
        broker.create_topic(f"missing-{topic}", 1)
        assert producer.wait(waiting.result(WAIT_S), WAIT_S).offset == 0


def test_a_missing_topic_is_named_when_it_is_not_to_be_created(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(broker.bootstrap, allow_auto_create_topics=False) as producer:
        with pytest.raises(UnknownTopicError, match=f"'{topic}x'"):
            producer.send(f"{topic}x", b"value")
        delivery = producer.wait(producer.send(topic, b"value", partition=1), WAIT_S)
        assert delivery.offset == 0


def test_records_and_their_deliveries_come_in_the_order_of_sends(broker: Broker, topic: str, face: Face) -> None:
    heard: list[int] = []
    values = [b"%d" % number for number in range(300)]
    with face.producer(broker.bootstrap, batch_size=500, linger_ms=1) as producer:
        for value in values:
            producer.send(topic, value, partition=0, on_delivery=lambda delivery: heard.append(delivery.offset))
        producer.flush()
    assert heard == list(range(300))
    with face.consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[bytes] = []
        while len(found) < len(values):
            found += [record.value for record in consumer.poll(WAIT_S)]
        assert found == values


def test_a_transaction_that_was_aborted_is_not_read(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with face.consumer(broker.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[bytes] = []
        while len(found) < 2:
            found += [record.value for record in consumer.poll(WAIT_S)]
        assert found == [b"0", b"2"]


def test_close_commits_what_was_handed_out(broker: Broker, topic: str, face: Face) -> None:
    send(broker, topic, *(b"%d" % number for number in range(10)))
    settings: dict[str, Any] = {"group": topic, "topics": [topic], "auto_offset_reset": "earliest", **GROUPS["classic"]}
    with face.consumer(broker.bootstrap, **settings) as consumer:
        found = consumer.poll(WAIT_S, 4)
        assert [record.offset for record in found] == [0, 1, 2, 3]
    with face.consumer(broker.bootstrap, **settings) as consumer:
        assert [record.offset for record in consumer.poll(WAIT_S)] == [4, 5, 6, 7, 8, 9]


def test_a_close_without_time_still_commits_and_leaves(broker: Broker, topic: str, face: Face) -> None:
    """Else the next member waits until the session of this one has ended."""
    send(broker, topic, *(b"%d" % number for number in range(10)))
    settings: dict[str, Any] = {"group": topic, "topics": [topic], "auto_offset_reset": "earliest", **GROUPS["classic"]}
    consumer = face.consumer(broker.bootstrap, **settings)
    assert [record.offset for record in consumer.poll(WAIT_S, 4)] == [0, 1, 2, 3]
    consumer.close(0)
    consumer.__exit__(None, None, None)
    with face.consumer(broker.bootstrap, **settings) as consumer:
        assert [record.offset for record in consumer.poll(WAIT_S)] == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("most", [0, -1])
def test_a_poll_for_no_records_is_refused(broker: Broker, topic: str, face: Face, most: int) -> None:
    """It spun until its timeout, and on asyncio for ever."""
    send(broker, topic, b"waits")
    with face.consumer(broker.bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ValueError, match=f"max_records must be at least 1, not {most}"):
            consumer.poll(1.0, most)
    queue = face.share_consumer(broker.bootstrap, group=topic, topics=[topic])
    with queue, pytest.raises(ValueError, match=f"max_records must be at least 1, not {most}"):
        queue.poll(1.0, most)


def test_a_failed_block_commits_nothing(broker: Broker, topic: str, face: Face) -> None:
    send(broker, topic, b"poison")
    settings: dict[str, Any] = {"group": topic, "topics": [topic], "auto_offset_reset": "earliest", **GROUPS["classic"]}
    for _ in range(2):
        consumer = face.consumer(broker.bootstrap, **settings)
        assert [record.value for record in consumer.poll(WAIT_S)] == [b"poison"]
        consumer.__exit__(LookupError, LookupError(), None)


def test_a_record_that_is_too_large_is_refused_at_once(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(broker.bootstrap, max_request_size=1000) as producer:
        with pytest.raises(KafkaError) as caught:
            producer.send(topic, b"x" * 2000)
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


def unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def said_about(caplog: pytest.LogCaptureFixture) -> str:
    """The one warning of a client that no broker answers."""
    (said,) = [record.getMessage() for record in caplog.records if record.name == "ixion.clients"]
    return said


def test_a_wrong_address_is_named_at_once(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    address = unused_address()
    with face.consumer(address, group="g", topics=["t"]) as consumer:
        while not caplog.records:
            assert consumer.poll(0.01) == []
        assert consumer.poll(0.3) == []  # and is not repeated
    assert f"connection refused by {address}; is the broker running?" in said_about(caplog)
    caplog.clear()
    with (
        face.producer(address, max_block_ms=100) as producer,
        pytest.raises(TimedOutError, match="is the broker running"),
    ):
        producer.send("t", b"value")
    assert "is the broker running?" in said_about(caplog)
