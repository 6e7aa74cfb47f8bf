"""Values that no request can carry: refused by the call that brings them, and everything else goes on.

Each of these once spoiled the request, or the batch, that it travelled in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ixion.clients import Consumer, Producer, RebalanceListener, TopicPartition
from ixion.clients.core.consumer.commits import OffsetAndMetadata
from ixion.clients.core.consumer.errors import ConsumerClosedError, ConsumerUseError
from ixion.language.model.errors import KafkaError
from ixion.testing import Broker
from tests.clients.test_dropped import let_go

pytestmark = pytest.mark.timeout(120)
PLACE = TopicPartition("t", 0)
REFUSED = (TypeError, ValueError, OverflowError, KafkaError)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # Any timestamp is accepted, so that only what the client refuses is refused.
    settings = {"group.initial.rebalance.delay.ms": 0, "log.message.timestamp.after.max.ms": 2**63 - 1}
    with Broker(settings=settings) as running:
        running.create_topic("t", 1)
        yield running


RECORDS: list[dict[str, Any]] = [
    {"timestamp_ms": 2**70},
    {"timestamp_ms": 2**63},
    {"timestamp_ms": -5},
    {"timestamp_ms": 1.5},
    {"partition": -1},
    {"partition": 2**70},
    {"partition": "0"},
    {"topic": ""},
    {"topic": b"t"},
    {"topic": None},
    {"topic": "x" * 40_000},
    {"topic": "\ud800"},
    {"value": "text"},
    {"key": 5},
    {"headers": {"a": 1}},
    {"headers": [("a", "1")]},
    {"headers": [(b"a", b"1")]},
    {"headers": [("\ud800", b"1")]},
    {"headers": [("a", b"1", b"2")]},
    {"headers": (pair for pair in [("a", b"1")])},
    {"headers": [("a", memoryview(b"1"))]},
]


@pytest.mark.parametrize("wrong", RECORDS, ids=[f"{next(iter(each))}-{number}" for number, each in enumerate(RECORDS)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_record_that_cannot_be_sent_harms_no_other(broker: Broker, wrong: dict[str, Any], is_first: bool) -> None:
    with Producer(broker.bootstrap, linger_ms=10_000) as producer:
        before = None if is_first else producer.send("t", b"before")
        with pytest.raises(REFUSED):
            producer.send(**{"topic": "t", "value": b"x", **wrong})
        after = producer.send("t", b"after", headers=[("schlüssel ✓", b"\xff"), ("", None), ("a", b"")])
        offset = after.result(60).offset
        assert before is None or before.result(60).offset == offset - 1


def test_the_ends_of_time_can_be_sent(broker: Broker) -> None:
    with Producer(broker.bootstrap) as producer:
        for timestamp_ms in (2**63 - 1, 0, 2**63 - 1):
            producer.send("t", b"x", timestamp_ms=timestamp_ms)


CALLS: dict[str, Callable[[Consumer], object]] = {
    "poll nan": lambda consumer: consumer.poll(math.nan),
    "seek too far": lambda consumer: consumer.seek(PLACE, 2**63),
    "seek to text": lambda consumer: consumer.seek(PLACE, "1"),  # type: ignore[arg-type]
    "commit too far": lambda consumer: consumer.commit({PLACE: 2**63}),
    "commit text": lambda consumer: consumer.commit({PLACE: "1"}),  # type: ignore[dict-item]
    "commit half a character": lambda consumer: consumer.commit({PLACE: OffsetAndMetadata(1, "\ud800")}),
    "commit no topic": lambda consumer: consumer.commit({TopicPartition("no/topic", 0): 1}),
    "a time before all": lambda consumer: consumer.offsets_for_times({PLACE: -5}),
    "a time too late": lambda consumer: consumer.offsets_for_times({PLACE: 2**63}),
    "a partition below 0": lambda consumer: consumer.end_offsets([TopicPartition("t", -1)]),
    "text for a partition": lambda consumer: consumer.assign(["t"]),  # type: ignore[list-item]
    "a partition too large": lambda consumer: consumer.assign([TopicPartition("t", 2**40)]),
    "a topic of bytes": lambda consumer: consumer.assign([TopicPartition(b"t", 0)]),  # type: ignore[arg-type]
    "committed of none": lambda consumer: consumer.committed([TopicPartition("", 0)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_cannot_be_made_leaves_the_consumer_as_it_was(broker: Broker, name: str) -> None:
    with Consumer(broker.bootstrap, group="wrong values", auto_offset_reset="earliest") as consumer:
        consumer.assign([PLACE])
        with pytest.raises(REFUSED):
            CALLS[name](consumer)
        consumer.seek(PLACE, 0)
        consumer.commit({PLACE: 0})
        assert consumer.beginning_offsets([PLACE]) == {PLACE: 0}


class Calling(RebalanceListener):
    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def on_assigned(self, partitions: object) -> None:
        self._act()


def poll_on(consumer: Consumer) -> None:
    while True:
        consumer.poll(1)


@pytest.mark.parametrize("name", ["poll", "unsubscribe", "close"])
def test_a_listener_that_changes_its_consumer_ends_the_poll_with_a_clear_error(broker: Broker, name: str) -> None:
    consumer = Consumer(broker.bootstrap, group=f"listener {name}")
    consumer.subscribe(["t"], Calling(getattr(consumer, name)))
    with pytest.raises((ConsumerUseError, ConsumerClosedError)) as caught:
        poll_on(consumer)
    assert str(caught.value) in (
        "a rebalance listener cannot poll",
        "there is nothing to read: subscribe() to topics, or assign() partitions",
        "this consumer is closed",
    )
    consumer.close()


def test_a_consumer_that_is_dropped_ends_its_thread(broker: Broker) -> None:
    kept = [Consumer(broker.bootstrap, group="dropped", topics=["t"])]
    while not kept[0].assignment():
        kept[0].poll(0.1)
    thread = kept[0]._engine._stand_in
    assert thread is not None
    with pytest.warns(ResourceWarning, match="unclosed consumer: its group waits until its session times out"):
        let_go(kept)
    thread.join(60)
    assert not thread.is_alive()


def send_until_one_is_late(producer: Producer) -> None:
    while True:
        producer.send("t", b"x").result(0)


def test_timeouts_of_nothing_end_at_once_and_change_nothing(broker: Broker) -> None:
    with Producer(broker.bootstrap) as producer:
        future = producer.send("t", b"x")
        with pytest.raises(KafkaError, match="not settled within 0 s"):
            send_until_one_is_late(producer)
        producer.flush()
        assert future.result(0).offset >= 0
    with Consumer(broker.bootstrap, group="nothing") as consumer:
        consumer.assign([PLACE])
        assert consumer.poll(0, 1) == []
        with pytest.raises(KafkaError, match="not done within 0 s"):
            consumer.commit({PLACE: 1}, timeout_s=0)
        consumer.commit({PLACE: 1})
        consumer.close(0)
