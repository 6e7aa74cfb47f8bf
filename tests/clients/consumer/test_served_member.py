"""Consumer groups (KIP-848): the coordinator assigns, step by step."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.clients import Consumer, TopicPartition
from ixion.clients.cluster import Cluster
from ixion.clients.consumer.served_member import ServedMember
from ixion.clients.group_offsets import fetch_offsets
from ixion.clients.groups import describe_group
from ixion.testing import Broker
from tests.clients.consumer.test_consumer import Listening, hurry, numbered, poll_all

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


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as found:
        yield found


def places(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


def member_of(cluster: Cluster, topic: str, **more: Any) -> ServedMember:
    return ServedMember(cluster, topic, [topic], rebalance_s=60, **more)


def beat(member: ServedMember) -> None:
    member._next_s = 0.0
    member.heartbeat_if_due()


def test_alone_it_reads_all_and_commits(cluster: Cluster, topic: str) -> None:
    member = member_of(cluster, topic)
    assert member.join() == places(topic)
    assert member.generation > 0
    assert not member.must_rejoin
    beat(member)
    assert not member.must_rejoin
    assert member.commit({places(topic)[0]: 7})
    assert fetch_offsets(cluster, topic) == {places(topic)[0]: 7}
    member.leave()
    assert describe_group(cluster, topic).members == ()
    assert not member.commit({places(topic)[0]: 8})
    assert member.join() == places(topic)
    member.leave()


def test_a_second_member_gets_what_the_first_gives_up(broker: Broker, cluster: Cluster, topic: str) -> None:
    first = member_of(cluster, topic)
    held = first.join()
    with Cluster(broker.bootstrap) as other:
        second = member_of(other, topic)
        assert second.join() == []
        while not first.must_rejoin:
            beat(first)
        kept = first.join(held)
        assert len(kept) == 1
        beat(second)
        assert second._target == [], "the first has not said yet that it has given anything up"
        assert first.join(kept) == kept
        while not second.must_rejoin:
            beat(second)
        assert sorted([*kept, *second.join()]) == held
        second.leave()
    first.leave()


def test_a_fenced_member_has_lost_all_and_joins_anew(cluster: Cluster, topic: str) -> None:
    member = member_of(cluster, topic)
    held = member.join()
    member.generation += 5
    beat(member)
    assert (member.must_rejoin, member.generation) == (True, -1)
    assert member.join(held) == []
    assert member.join() == held
    member.leave()


def test_a_stale_epoch_is_no_obstacle_to_a_commit(broker: Broker, cluster: Cluster, topic: str) -> None:
    first = member_of(cluster, topic)
    held = first.join()
    before = first.generation
    with Cluster(broker.bootstrap) as other:
        second = member_of(other, topic)
        second.join()
        while not first.must_rejoin:
            beat(first)
        first.join(first.join(held))
        assert first.generation > before
        first.generation = before
        assert first.commit({held[0]: 3})
        second.leave()
    assert fetch_offsets(cluster, topic) == {held[0]: 3}
    first.leave()


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

        def join() -> None:
            with Consumer(broker.bootstrap, **settings) as second:
                while not second.assignment() and not ended.is_set():
                    hurry(second)
                    second.poll(0.05)
                shares.append(second.assignment())
                ended.wait(60)

        other = threading.Thread(target=join)
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
