"""Consumer groups (KIP-848): the coordinator assigns, step by step."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.clients import Consumer, TopicPartition
from ixion.clients.core.consumer.commits import OffsetAndMetadata
from ixion.testing import Broker
from tests.clients.asking import describe_group, fetch_offsets
from tests.clients.consumer.test_consumer import Listening, hurry, join, member_of, numbered, poll_all

names = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"served-{next(names)}"
    broker.create_topic(name, 2)
    return name


def places(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


def served(broker: Broker, topic: str, **more: Any) -> Consumer:
    return Consumer(broker.bootstrap, group=topic, topics=[topic], group_protocol="consumer", **more)


def test_alone_it_reads_all_and_commits(broker: Broker, topic: str) -> None:
    with served(broker, topic) as consumer:
        assert join(consumer) == places(topic)
        assert member_of(consumer).generation > 0
        consumer.commit({places(topic)[0]: OffsetAndMetadata(7, "by hand")})
        assert fetch_offsets(broker.bootstrap, topic) == {places(topic)[0]: 7}
        assert consumer.committed_metadata(places(topic)) == {
            places(topic)[0]: OffsetAndMetadata(7, "by hand", -1),
            places(topic)[1]: None,
        }
    assert describe_group(broker.bootstrap, topic).members == ()


def test_a_fenced_member_loses_all_partitions_and_joins_again(broker: Broker, topic: str) -> None:
    heard = Listening()
    with served(broker, topic, listener=heard) as consumer:
        join(consumer)
        with consumer._lock:
            member_of(consumer).generation += 5
        hurry(consumer)
        while len(heard.heard) < 3:
            consumer.poll(0.05)
        assert heard.heard == [("assigned", 2), ("lost", 2), ("assigned", 2)]


def test_a_stale_epoch_is_no_obstacle_to_a_commit(broker: Broker, topic: str) -> None:
    with served(broker, topic, enable_auto_commit=False) as first:
        held = join(first)
        before = member_of(first).generation
        with served(broker, topic, enable_auto_commit=False) as second:
            while not second.assignment():
                for consumer in (first, second):
                    hurry(consumer)
                    consumer.poll(0.05)
            with first._lock:
                assert member_of(first).generation > before
                member_of(first).generation -= 1
            (kept,) = first.assignment()
            first.commit({kept: 3})
            assert kept in held
        assert fetch_offsets(broker.bootstrap, topic) == {kept: 3}


def test_a_pattern_is_followed_by_the_coordinator(broker: Broker, topic: str) -> None:
    with Consumer(broker.bootstrap, group=topic, pattern=f"{topic}(-new)?", group_protocol="consumer") as consumer:
        assert join(consumer) == places(topic)
        broker.create_topic(f"{topic}-new", 1)
        while len(consumer.assignment()) < 3:
            hurry(consumer)
            consumer.poll(0.05)
        assert consumer.assignment() == [*places(topic), TopicPartition(f"{topic}-new", 0)]


def test_a_member_that_stays_keeps_its_place(broker: Broker, topic: str) -> None:
    """KIP-1092, and the rule for static members."""
    consumer = served(broker, topic, group_instance_id="one")
    join(consumer)
    consumer.close()
    assert [member.instance_id for member in describe_group(broker.bootstrap, topic).members] == ["one"]
    consumer = served(broker, topic, group_instance_id="one")
    assert join(consumer) == places(topic)
    consumer.close(leave=True)
    assert describe_group(broker.bootstrap, topic).members == ()


def test_the_consumer_reads_commits_and_shares(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 3)
    settings: dict[str, Any] = {
        "group": topic,
        "topics": [topic],
        "group_protocol": "consumer",
        "auto_offset_reset": "earliest",
    }
    heard = Listening()
    with Consumer(broker.bootstrap, listener=heard, **settings) as first:
        assert len(poll_all(first, 3)) == 3
        assert first.assignment() == places(topic)
        ended = threading.Event()
        shares: list[list[TopicPartition]] = []

        def join_too() -> None:
            with Consumer(broker.bootstrap, **settings) as second:
                while not second.assignment() and not ended.is_set():
                    hurry(second)
                    second.poll(0.05)
                shares.append(second.assignment())
                ended.wait(60)

        other = threading.Thread(target=join_too)
        other.start()
        try:
            while not shares:
                hurry(first)
                assert first.poll(0.05) == []
            assert sorted([*first.assignment(), *shares[0]]) == places(topic)
            assert heard.heard[:2] == [("assigned", 2), ("revoked", 1)]
        finally:
            ended.set()
            other.join()
    with Consumer(broker.bootstrap, group=topic) as after:
        assert after.committed([places(topic)[0]]) == {places(topic)[0]: 3}
