"""`auto.offset.reset`, by its text and by what is read."""

from __future__ import annotations

import time

import pytest

from ixion.clients import Consumer, Producer, TopicPartition
from ixion.clients.core.consumer.reset import ResetPolicy, read_policy
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.core.consumer.subscription import EARLIEST, LATEST
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsRequest
from ixion.testing import Broker
from tests.clients.core.consumer_sim import TOPIC, ConsumerSimulation

PLACE = TopicPartition(TOPIC, 0)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("earliest", ResetPolicy(EARLIEST)),
        ("latest", ResetPolicy(LATEST)),
        ("none", ResetPolicy(None)),
        ("by_duration:P1D", ResetPolicy(None, 86_400_000)),
        ("by_duration:PT0S", ResetPolicy(None, 0)),
        ("by_duration:P2DT3H4M5.678S", ResetPolicy(None, 183_845_678)),
        ("by_duration:pt1.5s", ResetPolicy(None, 1_500)),
    ],
)
def test_policies(text: str, policy: ResetPolicy) -> None:
    assert read_policy(text) == policy


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Latest",
        "by_duration",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1DT",
        "by_duration:1H",
    ]
    + ["by_duration:-PT1H", "by_duration:PT-1H", "by_duration:PT1M1H", "by_duration:P1Y", "by_duration:P\u0661D"]
    + ["by_duration:P999999999999999999D"],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="auto_offset_reset"):
        read_policy(text)
    with pytest.raises(ValueError, match="auto_offset_reset"):
        Consumer("127.0.0.1:9092", auto_offset_reset=text)


def test_a_duration_begins_at_the_first_record_that_is_young_enough() -> None:
    now_ms = time.time_ns() // 1_000_000
    with Broker() as broker:
        broker.create_topic("t", 1)
        with Producer(broker.bootstrap) as producer:
            for minutes in (180, 90, 30, 1):
                producer.send("t", b"%d" % minutes, timestamp_ms=now_ms - minutes * 60_000)
        for duration, values in (("PT2H", [b"90", b"30", b"1"]), ("P1D", [b"180", b"90", b"30", b"1"])):
            with Consumer(broker.bootstrap, auto_offset_reset=f"by_duration:{duration}") as consumer:
                consumer.assign([TopicPartition("t", 0)])
                found: list[bytes | None] = []
                while len(found) < len(values):
                    found += [record.value for record in consumer.poll(10)]
                assert found == values


def test_where_no_record_is_young_enough_one_that_comes_meanwhile_is_read() -> None:
    sim = ConsumerSimulation(1, trouble=0)
    log = sim.logs[0]
    log.append(5)
    consumer = sim.consumer(settings=ConsumerSettings(auto_offset_reset="by_duration:PT1S"))
    consumer.assign([PLACE])
    sim.run(10, lambda: consumer.subscription.assigned[PLACE].known_end is not None)
    log.append(2)  # between the two questions
    sim.run(10, lambda: consumer.subscription.assigned[PLACE].position is not None)
    assert consumer.subscription.assigned[PLACE].position == 5
    asked = [
        part.timestamp
        for _, _, request in sim.seen
        if isinstance(request, ListOffsetsRequest)
        for topic in request.topics
        for part in topic.partitions
    ]
    assert asked[0] == LATEST
    assert asked[-1] >= 0
