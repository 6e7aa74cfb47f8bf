from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.broker.log.mover import Mover
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ixion.language.protocol.messages.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.filling import fill

Places = dict[tuple[str, int], list[tuple[str, bool]]]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / "one"), str(tmp_path / "two")]


def start(paths: list[str]) -> Broker:
    return Broker({"log.dirs": ",".join(paths)}, data=paths[0])


def move(asking: Asking, path: str, topic: str, *numbers: int, version: int = -1) -> list[tuple[int, int]]:
    wish = AlterReplicaLogDir(path=path, topics=(AlterReplicaLogDirTopic(name=topic, partitions=numbers),))
    (answer,) = asking.ask(AlterReplicaLogDirsRequest(dirs=(wish,)), AlterReplicaLogDirsResponse, version).results
    assert answer.topic_name == topic
    return [(each.partition_index, each.error_code) for each in answer.partitions]


def places(asking: Asking) -> Places:
    """Where each partition is, and where it is going to be."""
    found: Places = {}
    for place in asking.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results:
        for topic in place.topics:
            for each in topic.partitions:
                found.setdefault((topic.name, each.partition_index), []).append((place.log_dir, each.is_future_key))
    return found


def other(paths: list[str], place: str) -> str:
    return paths[1] if place == paths[0] else paths[0]


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def values(bootstrap: str, count: int) -> list[bytes | str | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes | str | None] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), 20)
        assert messages
        found += [message.value() for message in messages]
    consumer.close()
    return found


def test_there_and_back_in_every_version(paths: list[str]) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t")
        fill(broker.bootstrap, "t")
        for version in versions(ApiKey.ALTER_REPLICA_LOG_DIRS):
            target = other(paths, places(asking)["t", 0][0][0])
            assert move(asking, target, "t", 0, version=version) == [(0, ErrorCode.NONE)]
            wait_until(lambda target=target: places(asking)["t", 0] == [(target, False)])  # type: ignore[misc]
            assert os.path.isdir(os.path.join(target, "t-0"))
            fill(broker.bootstrap, "t", count=1)
        assert len(values(broker.bootstrap, 12)) == 12


def test_many_at_once(paths: list[str]) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t", 12)
        for _ in range(3):
            wanted = {key: [(other(paths, found[0][0]), False)] for key, found in places(asking).items()}
            for (topic, number), found in wanted.items():
                assert move(asking, found[0][0], topic, number) == [(number, ErrorCode.NONE)]
            wait_until(lambda wanted=wanted: places(asking) == wanted)  # type: ignore[misc]


def test_producers_do_not_notice_a_move(paths: list[str]) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t")
        failures: list[object] = []
        sent = 0
        enough = Event()

        def write() -> None:
            nonlocal sent
            producer = Producer({"bootstrap.servers": broker.bootstrap, "retries": 0, "acks": "all", "linger.ms": 0})
            while not enough.is_set():
                producer.produce(
                    "t", b"%d" % sent, on_delivery=lambda error, _: failures.append(error) if error else None
                )
                sent += 1
                producer.poll(0)
                if sent % 50 == 0:
                    producer.flush(20)
            assert producer.flush(20) == 0

        writer = Thread(target=write)
        writer.start()
        for _ in range(4):
            target = other(paths, places(asking)["t", 0][0][0])
            assert move(asking, target, "t", 0) == [(0, ErrorCode.NONE)]
            wait_until(lambda target=target: places(asking)["t", 0] == [(target, False)])  # type: ignore[misc]
        enough.set()
        writer.join()
        assert failures == []
        assert values(broker.bootstrap, sent) == [b"%d" % number for number in range(sent)]


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Every move is so slow that it is still at its beginning when it is called off. The event: one has begun."""
    begun = Event()
    run = Mover.run

    def slow(mover: Mover) -> object:
        begun.set()
        mover._cancelled.wait(20)
        return run(mover)

    monkeypatch.setattr(Mover, "run", slow)
    return begun


def test_a_new_destination_calls_the_old_move_off(paths: list[str], stuck: Event) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t")
        fill(broker.bootstrap, "t")
        home = places(asking)["t", 0][0][0]
        move(asking, other(paths, home), "t", 0)
        assert stuck.wait(20)
        assert move(asking, home, "t", 0) == [(0, ErrorCode.NONE)]

        async def idle(real: RealBroker) -> bool:
            moves = real.parts.replicas.moves
            return not moves._under_way and not moves._after

        wait_until(lambda: broker.call(idle))
        assert places(asking)["t", 0] == [(home, False)]
        assert len(values(broker.bootstrap, 10)) == 10


def test_a_stop_does_not_forget_where_to(paths: list[str], stuck: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t")
        fill(broker.bootstrap, "t")
        home = places(asking)["t", 0][0][0]
        move(asking, other(paths, home), "t", 0)
        assert stuck.wait(20)
    monkeypatch.undo()
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        wait_until(lambda: places(asking)["t", 0] == [(other(paths, home), False)])
        assert len(values(broker.bootstrap, 10)) == 10


def test_a_deleted_topic_leaves_nothing_on_its_way(paths: list[str]) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t")
        fill(broker.bootstrap, "t")
        move(asking, other(paths, places(asking)["t", 0][0][0]), "t", 0)

        async def delete(real: RealBroker) -> None:
            await real.parts.controller.topics.delete(["t"])

        broker.call(delete)
        wait_until(lambda: places(asking) == {})


def test_partitions_that_are_not_there_yet_are_made_where_wished(paths: list[str]) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert move(asking, paths[1], "t", 0, 1, 2) == [(0, unknown), (1, unknown), (2, unknown)]
        broker.create_topic("t", 3)
        assert places(asking) == {("t", number): [(paths[1], False)] for number in range(3)}


def test_what_cannot_be(paths: list[str]) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t")
        home = places(asking)["t", 0][0][0]
        assert move(asking, "/no/such/place", "t", 0) == [(0, ErrorCode.LOG_DIR_NOT_FOUND)]
        assert move(asking, home, "t", 0, 9) == [(0, ErrorCode.NONE), (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        assert move(asking, home, "a b", 0) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]

        async def lose(real: RealBroker) -> None:
            for directory in real.parts.logs.directories:
                if directory.path != home:
                    directory.state.fail("testing", OSError("gone"))

        broker.call(lose)
        assert move(asking, other(paths, home), "t", 0) == [(0, ErrorCode.KAFKA_STORAGE_ERROR)]
        assert places(asking)["t", 0] == [(home, False)]


def test_delayed_records_move_with_their_partition(paths: list[str]) -> None:
    with start(paths) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("t", delivery_delay_mode="record")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce("t", b"far", headers={"x-deliver-after-ms": "100000000", "x-schedule-id": "a"})
        assert producer.flush(60) == 0
        ((here, _),) = places(asking)["t", 0]
        there = other(paths, here)
        assert move(asking, there, "__delay.t", 0) == [(0, ErrorCode.POLICY_VIOLATION)]
        assert move(asking, there, "t", 0) == [(0, ErrorCode.NONE)]
        wait_until(lambda: places(asking)["t", 0] == [(there, False)])
        assert places(asking)["__delay.t", 0] == [(there, False)]
        producer.produce("t", b"near", headers={"x-deliver-after-ms": "0", "x-schedule-id": "a"})
        assert producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "log_level": 0})
        consumer.assign([TopicPartition("t", 0, 0)])
        (message,) = consumer.consume(1, 60)
        assert message.value() == b"near"
        consumer.close()
