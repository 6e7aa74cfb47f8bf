"""The consumer against a broker, step by step as the documents have it, and what can be done wrong with it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from ixion.clients import Consumer, RebalanceListener, TopicPartition
from ixion.clients.consumer.guard import ConcurrentUseError
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.core.consumer.classic import ClassicMember
from ixion.clients.core.consumer.errors import (
    CommitFailedError,
    ConsumerClosedError,
    ConsumerUseError,
    NoOffsetError,
    WakeupError,
)
from ixion.clients.core.consumer.member import Member
from ixion.clients.core.consumer.subscription import NotAssignedError
from ixion.clients.producer import Producer
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.clients.asking import delete_records, describe_group
from tests.clients.fake import FakeCluster
from tests.clients.test_reader import ORDERS, fill

numbers = itertools.count()
WAIT_S = 60.0  # a busy machine takes its time; what comes sooner is returned sooner


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"topic-{next(numbers)}"
    broker.create_topic(name, 2)
    return name


def send(broker: Broker, topic: str, *values: bytes, partition: int = 0) -> None:
    with Producer(broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value, partition=partition)


def numbered(broker: Broker, topic: str, count: int, partition: int = 0) -> None:
    send(broker, topic, *(b"%d" % number for number in range(count)), partition=partition)


def reading(broker: Broker, topic: str, offset: int | None = 0, **settings: Any) -> Consumer:
    """One that reads partition 0 from `offset`."""
    consumer = Consumer(broker.bootstrap, **settings)
    consumer.assign([TopicPartition(topic, 0)])
    if offset is not None:
        consumer.seek(TopicPartition(topic, 0), offset)
    return consumer


def poll_all(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    while len(found) < count:
        more = consumer.poll(WAIT_S)
        assert more, f"{len(found)} of {count} records came"
        found += more
    return found


def hurry(consumer: Consumer) -> None:
    """Its next heartbeat is due, so that it notices a rebalance at once."""
    member_of(consumer).hurry(0.0)


def member_of(consumer: Consumer) -> Member:
    assert consumer._machine.group is not None
    return consumer._machine.group.member


def join(consumer: Consumer) -> list[TopicPartition]:
    """Poll until the group has assigned something and nothing is left to do."""
    member = member_of(consumer)
    while not consumer.assignment() or member.is_joining or member.must_rejoin or consumer._machine.has_news:
        assert consumer.poll(0.05) == []
    return consumer.assignment()


def test_step_1_records_come_by_polling_again_and_again(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 1200)
    with reading(broker, topic) as consumer:
        found = poll_all(consumer, 1200)
        assert [record.value for record in found] == [b"%d" % number for number in range(1200)]
        assert {(record.topic, record.partition) for record in found} == {(topic, 0)}
        assert found[7].offset == 7
        assert found[7].key is None
        assert found[7].headers == []
        assert consumer.poll() == []


def test_step_2_another_thread_is_refused(broker: Broker, topic: str) -> None:
    with reading(broker, topic) as consumer:
        said: list[BaseException] = []

        def intrude() -> None:
            try:
                consumer.poll()
            except ConcurrentUseError as error:
                said.append(error)

        with consumer._guard:
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()
        assert len(said) == 1


def test_step_3_a_negative_timeout_and_nothing_to_read_are_errors(broker: Broker, topic: str) -> None:
    with Consumer(broker.bootstrap) as consumer:
        with pytest.raises(ConsumerUseError, match="there is nothing to read"):
            consumer.poll()
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ValueError, match="a timeout must not be negative: -1"):
            consumer.poll(-1)


def test_step_4_wakeup_ends_a_poll_of_another_thread(broker: Broker, topic: str) -> None:
    with reading(broker, topic) as consumer:
        threading.Timer(0.05, consumer.wakeup).start()
        with pytest.raises(WakeupError):
            consumer.poll(WAIT_S)
        numbered(broker, topic, 1)
        assert len(poll_all(consumer, 1)) == 1


def test_step_5_the_group_assigns_partitions_and_positions(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 3)
    numbered(broker, topic, 2, partition=1)
    with Consumer(broker.bootstrap, group=topic, topics=[topic], auto_offset_reset="earliest") as consumer:
        assert len(poll_all(consumer, 5)) == 5
        assert consumer.assignment() == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    send(broker, topic, b"next")
    with Consumer(broker.bootstrap, group=topic, topics=[topic]) as consumer:
        assert [record.value for record in poll_all(consumer, 1)] == [b"next"]


def test_step_7_the_half_read_fetch_is_kept(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 10)
    with reading(broker, topic, max_poll_records=4) as consumer:
        sizes: list[int] = []
        while sum(sizes) < 10:
            sizes.append(len(consumer.poll(WAIT_S)))
            assert consumer.position(TopicPartition(topic, 0)) == sum(sizes)
        assert sizes == [4, 4, 2]


def test_step_8_what_was_fetched_is_not_fetched_again() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 4)
        with Consumer(fakes.bootstrap, max_poll_records=1) as consumer:
            consumer.assign([ORDERS[0]])
            consumer.seek(ORDERS[0], 0)
            assert [record.offset for _ in range(20) for record in consumer.poll(WAIT_S)] == list(range(20))
        asked = [
            part.fetch_offset
            for _, api, request in fakes.seen
            if api == ApiKey.FETCH
            for wanted in request.topics  # type: ignore[attr-defined]
            for part in wanted.partitions
        ]
        before_the_end = [offset for offset in asked if offset < 20]
        assert before_the_end == sorted(set(before_the_end))


def test_step_14_the_next_fetch_is_under_way_before_poll_returns() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, ORDERS[0], 1)
        with Consumer(fakes.bootstrap) as consumer:
            consumer.assign([ORDERS[0]])
            consumer.seek(ORDERS[0], 0)
            assert len(consumer.poll(WAIT_S)) == 5
            assert consumer._machine.fetcher.is_flying


class Doubling:
    def __init__(self) -> None:
        self.committed: list[dict[TopicPartition, int]] = []

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return [*records, *records]

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.committed.append(dict(offsets))


def test_step_15_interceptors_see_records_and_commits(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 1)
    seen = Doubling()
    with reading(broker, topic, group=topic, interceptors=[seen], enable_auto_commit=False) as consumer:
        assert [record.offset for record in consumer.poll(WAIT_S)] == [0, 0]
        consumer.commit()
    assert seen.committed == [{TopicPartition(topic, 0): 1}]


def test_step_16_nothing_comes_in_time(broker: Broker, topic: str) -> None:
    with reading(broker, topic) as consumer:
        assert consumer.poll(0.05) == []


def test_iteration_moves_the_position_record_by_record(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 5)
    place = TopicPartition(topic, 0)
    with reading(broker, topic) as consumer:
        for record in consumer:
            assert consumer.position(place) == record.offset + 1
            if record.offset == 2:
                break
        assert [record.offset for record in poll_all(consumer, 2)] == [3, 4]


def test_batches_are_columns_and_arrow(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 300)
    with reading(broker, topic, offset=7) as consumer:
        seen: list[int] = []
        for batch in consumer.batches(WAIT_S):
            assert (batch.topic, batch.partition) == (topic, 0)
            assert batch.values[0] == b"%d" % batch.offsets[0]
            assert batch.to_arrow().column("offset").to_pylist() == list(batch.offsets)
            seen += batch.offsets
            assert consumer.position(TopicPartition(topic, 0)) == seen[-1] + 1
            if len(seen) == 293:
                break
        assert seen == list(range(7, 300))
        assert list(consumer.batches(0.01)) == []


def test_seek_pause_and_resume(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 5)
    place = TopicPartition(topic, 0)
    with reading(broker, topic, offset=3) as consumer:
        assert [record.offset for record in poll_all(consumer, 2)] == [3, 4]
        consumer.seek(place, 1)
        assert [record.offset for record in consumer.poll(WAIT_S, 1)] == [1]
        consumer.pause(place)
        assert consumer.paused() == [place]
        assert consumer.poll(0.05) == []
        consumer.resume(place)
        assert [record.offset for record in poll_all(consumer, 3)] == [2, 3, 4]
        consumer.seek_to_beginning()
        assert [record.offset for record in poll_all(consumer, 5)] == list(range(5))
        consumer.seek_to_end(place)
        assert consumer.position(place) == 5
        with pytest.raises(ValueError, match="an offset is -1"):
            consumer.seek(place, -1)
        with pytest.raises(NotAssignedError):
            consumer.seek(TopicPartition(topic, 1), 0)


@pytest.mark.parametrize(("policy", "first"), [("earliest", 4), ("latest", 9)])
def test_an_offset_that_is_gone_is_reset(broker: Broker, topic: str, policy: str, first: int) -> None:
    numbered(broker, topic, 9)
    place = TopicPartition(topic, 0)
    delete_records(broker.bootstrap, {place: 4})
    with reading(broker, topic, offset=1, auto_offset_reset=policy) as consumer:
        while consumer.position(place) == 1:
            found = consumer.poll(0.1)
        assert consumer.position(place) in (first, 9)
        assert [record.offset for record in found][:1] in ([], [4])
        consumer.seek(place, 99)
        while consumer.position(place) == 99:
            consumer.poll(0.1)


def test_without_a_policy_a_missing_offset_is_an_error(broker: Broker, topic: str) -> None:
    with reading(broker, topic, offset=None, auto_offset_reset="none", group=topic) as consumer:
        with pytest.raises(NoOffsetError, match=f"{topic}-0: no valid offset to read from"):
            consumer.poll(WAIT_S)
        consumer.seek(TopicPartition(topic, 0), 0)
        assert consumer.poll() == []


def test_offsets_of_the_broker_and_of_the_group(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 3)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with reading(broker, topic, group=topic, enable_auto_commit=False) as consumer:
        assert consumer.beginning_offsets([first]) == {first: 0}
        assert consumer.end_offsets([first, second]) == {first: 3, second: 0}
        assert consumer.offsets_for_times({first: 0, second: 0}) == {first: 0, second: None}
        poll_all(consumer, 3)
        consumer.commit()
        assert consumer.committed([first, second]) == {first: 3, second: None}
        consumer.commit({first: 1})
        assert consumer.committed([first]) == {first: 1}


class Listening(RebalanceListener):
    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.heard.append(("assigned", len(partitions)))

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.heard.append(("revoked", len(partitions)))

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.heard.append(("lost", len(partitions)))


def test_two_members_share_a_topic_and_hear_of_it(broker: Broker, topic: str) -> None:
    heard = Listening()
    settings: dict[str, Any] = {"group": topic, "topics": [topic], "auto_offset_reset": "earliest"}
    with Consumer(broker.bootstrap, listener=heard, **settings) as first:
        join(first)
        assert heard.heard == [("assigned", 2)]
        ended = threading.Event()
        shares: list[int] = []

        def join_too() -> None:
            with Consumer(broker.bootstrap, **settings) as second:
                shares.append(len(join(second)))
                ended.wait(WAIT_S)

        other = threading.Thread(target=join_too)
        other.start()
        while not shares:
            hurry(first)
            first.poll(0.05)
        assert shares == [1]
        while len(heard.heard) < 3:  # our own share may come a moment later
            first.poll(0.05)
        assert len(first.assignment()) == 1
        assert heard.heard == [("assigned", 2), ("revoked", 2), ("assigned", 1)]
        ended.set()
        other.join()


def test_cooperative_members_read_on_while_the_group_is_balanced(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 2)
    numbered(broker, topic, 2, partition=1)
    settings: dict[str, Any] = {
        "group": topic,
        "topics": [topic],
        "auto_offset_reset": "earliest",
        "partition_assignment_strategy": ["cooperative-sticky"],
        "enable_auto_commit": False,
    }
    heard = Listening()
    with Consumer(broker.bootstrap, listener=heard, **settings) as first:
        assert len(poll_all(first, 4)) == 4
        ended = threading.Event()
        shares: list[list[TopicPartition]] = []

        def join() -> None:
            with Consumer(broker.bootstrap, **settings) as second:
                while not second.assignment() and not ended.is_set():
                    hurry(second)
                    second.poll(0.05)
                shares.append(second.assignment())
                ended.wait(WAIT_S)

        other = threading.Thread(target=join)
        other.start()
        while not shares:
            hurry(first)
            # Nothing is committed, so a partition that is kept and begun anew would be read twice.
            assert first.poll(0.05) == []
        assert sorted([*first.assignment(), *shares[0]]) == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        assert len(shares[0]) == 1
        assert ("revoked", 1) in heard.heard
        assert ("revoked", 2) not in heard.heard
        ended.set()
        other.join()


def test_sticky_members_get_back_what_they_had(broker: Broker, topic: str) -> None:
    settings: dict[str, Any] = {"group": topic, "topics": [topic], "partition_assignment_strategy": ["sticky"]}
    with Consumer(broker.bootstrap, **settings) as member:
        join(member)
        state = member_of(member)
        assert isinstance(state, ClassicMember)
        before = state.generation
        state.must_rejoin = True
        while state.generation == before or state.is_joining:
            member.poll(0.05)
        join(member)
        assert state.last == (member.assignment(), state.generation)
        assert len(member.assignment()) == 2


def test_a_caller_that_stays_away_too_long_is_given_up(broker: Broker, topic: str) -> None:
    heard = Listening()
    numbered(broker, topic, 2)
    with Consumer(
        broker.bootstrap, group=topic, topics=[topic], listener=heard, auto_offset_reset="earliest"
    ) as consumer:
        poll_all(consumer, 2)
        group = consumer._machine.group
        assert group is not None
        with consumer._lock:
            group.polled_s -= 300.5
            consumer._engine.pump(time.monotonic())
            consumer._engine.wait(lambda: not group.member.is_leaving, time.monotonic() + WAIT_S)
        assert describe_group(broker.bootstrap, topic).members == ()
        with pytest.raises(CommitFailedError, match="has rebalanced: nothing is committed"):
            consumer.commit({TopicPartition(topic, 0): 1})
        assert len(poll_all(consumer, 2)) == 2  # from the beginning, since nothing was committed
        assert heard.heard == [("assigned", 2), ("lost", 2), ("assigned", 2)]


def test_close_commits_and_leaves_and_ends_its_thread(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 3)
    consumer = Consumer(broker.bootstrap, group=topic, topics=[topic], auto_offset_reset="earliest")
    poll_all(consumer, 3)
    consumer.close()
    consumer.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "ixion-heartbeats"]
    assert describe_group(broker.bootstrap, topic).state == "Empty"
    with pytest.raises(ConsumerClosedError, match="this consumer is closed"):
        consumer.poll()
    with Consumer(broker.bootstrap, group=topic) as after:
        assert after.committed([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 3}


def test_a_static_member_comes_back_to_its_partitions(broker: Broker, topic: str) -> None:
    settings: dict[str, Any] = {"group": topic, "topics": [topic], "group_instance_id": "one"}
    for _ in range(2):
        with Consumer(broker.bootstrap, **settings) as consumer:
            assert len(join(consumer)) == 2
        found = describe_group(broker.bootstrap, topic)
        assert [member.instance_id for member in found.members] == ["one"]


def test_calls_that_do_not_fit(broker: Broker, topic: str) -> None:
    with Consumer(broker.bootstrap) as alone:
        for call in (lambda: alone.subscribe([topic]), alone.commit, lambda: alone.committed([])):
            with pytest.raises(ConsumerUseError, match="group=…"):
                call()
    with Consumer(broker.bootstrap, group=topic, topics=[topic]) as member:
        with pytest.raises(ConsumerUseError, match="the group assigns their partitions"):
            member.assign([TopicPartition(topic, 0)])
        with pytest.raises(ValueError, match="topics must be a list of names, not 'orders'"):
            member.subscribe("orders")
    with (
        reading(broker, topic, group=topic) as chosen,
        pytest.raises(ConsumerUseError, match="partitions of its choice"),
    ):
        chosen.subscribe([topic])
