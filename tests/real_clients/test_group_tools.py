"""Kafka 4.3's own tools list, describe, reset and delete groups, old protocol and new."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ixion.testing import Broker
from tests.real_clients.tool_stage import ToolStage
from tests.real_clients.toolbox import ToolBox

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="a JVM takes seconds: once is enough, compiled"
)

SCENARIOS = Path(__file__).parent / "scenarios"
SETTINGS: dict[str, Any] = {"broker.id": 1, "group.min.session.timeout.ms": 500}
GROUPS: dict[str, dict[str, Any]] = {"old": {"session.timeout.ms": 6_000}, "new": {"group.protocol": "consumer"}}
NOW = 1_700_000_000_000  # 2023-11-14T22:13:20


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        running.create_topic("t", 4)
        running.create_topic("u")
        yield running


def fill(bootstrap: str) -> None:
    """Ten records in each partition of "t", a second apart; "idle" has committed offsets."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(40):
        producer.produce("t", b"%d" % number, partition=number % 4, timestamp=NOW + number // 4 * 1000)
    assert producer.flush(20) == 0
    idle = Consumer({"bootstrap.servers": bootstrap, "group.id": "idle", "enable.auto.commit": False})
    offsets = [*(TopicPartition("t", number, 4) for number in range(4)), TopicPartition("u", 0, 0)]
    idle.commit(offsets=offsets, asynchronous=False)
    idle.close()


def join(bootstrap: str, group: str) -> Consumer:
    given: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "me", "log_level": 0}
    consumer = Consumer({**given, "enable.auto.commit": False, **GROUPS[group]})
    consumer.subscribe(["t"])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    deadline = time.monotonic() + 30
    state = None
    while len(consumer.assignment()) < 4 or state != ConsumerGroupState.STABLE:
        assert time.monotonic() < deadline, f"{group} was not assigned"
        consumer.poll(0.05)
        state = admin.describe_consumer_groups([group])[group].result(20).state
    consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
    return consumer


def test_groups(broker: Broker, box: ToolBox, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text('"t",0,1\n"t",3,9\n')
    fill(broker.bootstrap)
    with ExitStack() as stack:
        members = [stack.enter_context(closing(join(broker.bootstrap, group))) for group in GROUPS]
        words = {"PLAN": str(plan), "MEMBER-1": members[0].memberid(), "MEMBER-2": members[1].memberid()}
        ToolStage(box, broker.bootstrap, words, {}).play(SCENARIOS / "groups.txt")
