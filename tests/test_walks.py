"""Each walk of ARCHITECTURE.md ("Follow one …") goes by the modules that it names, in that order.

A walk names its path in one line, `**Path**: a → b → c`. The test does what the walk tells of and writes down in which
order modules are first entered; those of the path must come in the order of the path. Compiled functions cannot be
watched, so this runs with the interpreted package only.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from confluent_kafka import Consumer
from confluent_kafka import Producer as LibrdkafkaProducer

from ixion.cli.main import build_kind
from ixion.clients.producer import Producer
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.purgatory import DelayedOperation, DelayedOperationPurgatory
from ixion.testing import Broker
from ixion.timer import ManualClock, SystemTimer
from tests.apis import streams_group_kit
from tests.apis.raw import Raw
from tests.apis.share_group_kit import beat
from tests.apis.share_kit import ACCEPT, RENEW, Member, initialize
from tests.apis.test_k01_fetch import id_of, write
from tests.log.support import batch

pytestmark = pytest.mark.skipif(build_kind() != "interpreted", reason="compiled functions cannot be watched")

PAGE = (Path(__file__).parent.parent / "ARCHITECTURE.md").read_text()
WALK = re.compile(r"^## Follow one (.+?)\n\n\*\*Path\*\*: (.+?)\n\n", re.MULTILINE | re.DOTALL)
PATHS = {name: path.replace("\n", " ").replace("`", "").split(" → ") for name, path in WALK.findall(PAGE)}


class Trail:
    """The modules of ixion in the order in which they are entered."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            if name.startswith("ixion."):
                self.modules.setdefault(name.removeprefix("ixion."))

    def start_over(self) -> None:
        self.modules = {}

    def along(self, path: list[str]) -> list[str]:
        """The modules of the path, in the order in which they were entered."""
        return [module for module in self.modules if module in path]


@contextmanager
def watching() -> Iterator[Trail]:
    """Every thread that is started inside, and this one, leaves a trail."""
    trail = Trail()
    threading.setprofile(trail.note)
    sys.setprofile(trail.note)
    try:
        yield trail
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def task(trail: Trail) -> None:
    timer = SystemTimer("walk", clock=(clock := ManualClock()))
    ran = threading.Event()
    trail.start_over()
    timer.call_later(450, ran.set)
    for _ in range(45):
        clock.advance(10)
        timer.advance_clock(0)
    assert ran.wait(30)
    timer.shutdown()


def delayed_operation(trail: Trail) -> None:
    class Never(DelayedOperation):
        def try_complete(self) -> bool:
            return False

        def on_complete(self) -> None:
            pass

    clock = ManualClock()
    timer = SystemTimer("walk", clock=clock)
    purgatory = DelayedOperationPurgatory("walk", timer=timer, reaper=False, purge_interval=0)
    trail.start_over()
    operation = Never(5)
    purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert operation.force_complete()
    purgatory.advance_clock(0)
    purgatory.shutdown()
    timer.shutdown()


def produce(trail: Trail) -> None:
    with Broker() as broker:
        broker.create_topic("t")
        trail.start_over()
        producer = LibrdkafkaProducer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
        producer.produce("t", b"v")
        assert producer.flush(30) == 0


def join(broker: Broker, group: str, protocol: str) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol})
    joined = threading.Event()
    consumer.subscribe(["t"], on_assign=lambda *_: joined.set())
    while not joined.is_set():
        consumer.poll(0.1)
    consumer.close()


def rebalance(trail: Trail, protocol: str = "classic") -> None:
    with Broker() as broker:
        broker.create_topic("t")
        join(broker, "first", protocol)  # the coordinator is made, its code imported
        trail.start_over()
        join(broker, "second", protocol)


def consumer_group(trail: Trail) -> None:
    rebalance(trail, "consumer")


def new_topic(trail: Trail) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    with Broker() as broker:
        trail.start_over()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(30)


def record(trail: Trail) -> None:
    with Broker() as broker:
        broker.create_topic("t")
        with Producer(broker.bootstrap) as producer:
            trail.start_over()
            producer.send("t", b"v")
            producer.flush()


def transaction(trail: Trail) -> None:
    with Broker() as broker:
        broker.create_topic("t")
        commit(broker, "before")  # the coordinator is made, its code imported
        trail.start_over()
        commit(broker, "now")


def commit(broker: Broker, transactional_id: str) -> None:
    producer = LibrdkafkaProducer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", b"v")
    producer.commit_transaction(30)


def shared(trail: Trail) -> None:
    with Broker() as broker:
        broker.create_topic("t")
        topic_id = id_of(broker, "t")
        initialize(broker, "g", topic_id)
        write(broker, "t", batch(b"v"))
        member = Member(broker, "g", topic_id)
        trail.start_over()
        assert member.acquire() == [(0, 0, 1)]
        assert member.codes((0, 0, RENEW), is_renew_ack=True) == ["NONE"]
        assert member.codes((0, 0, ACCEPT)) == ["NONE"]
        member.close()


def share_group(trail: Trail) -> None:
    with Broker() as broker:
        broker.create_topic("t")
        with Raw(broker.bootstrap) as raw:
            raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g", key_type=0))
            beat(raw, "before")  # the coordinators are made, their code imported
            trail.start_over()
            assert beat(raw, "g").assignment.topic_partitions


def streams_group(trail: Trail) -> None:
    store = streams_group_kit.subtopology("0", "t", changelogs=(streams_group_kit.topic("store"),))
    with Broker({"group.streams.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("t")
        with Raw(broker.bootstrap) as raw:
            raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g", key_type=0))
            streams_group_kit.beat(raw, "before")
            trail.start_over()
            answer = streams_group_kit.beat(raw, "g", topology=streams_group_kit.topology(store))
            assert streams_group_kit.active(answer) == {"0": (0,)}


WALKS: dict[str, Callable[[Trail], None]] = {
    "task": task,
    "delayed operation": delayed_operation,
    "request": produce,
    "append": produce,
    "produce": produce,
    "rebalance": rebalance,
    "heartbeat of a consumer group": consumer_group,
    "heartbeat of a share group": share_group,
    "heartbeat of a streams group": streams_group,
    "record of a share group": shared,
    "new topic": new_topic,
    "record through our own client": record,
    "transaction": transaction,
}


def test_every_walk_names_its_path() -> None:
    walks = re.findall(r"^## Follow one (.+)$", PAGE, re.MULTILINE)
    assert sorted(PATHS) == sorted(set(walks) - {"batch of a pipeline"})  # that one is on the other side of a JVM
    assert sorted(PATHS) == sorted(WALKS)


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_goes_by_the_modules_it_names(walk: str) -> None:
    path = PATHS[walk]
    with watching() as trail:
        WALKS[walk](trail)
    assert trail.along(path) == path, trail.along(path)
