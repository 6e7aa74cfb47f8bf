"""The simulated cluster: brokers that live, die and come back, on one tree and one network."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from devtools.sim.disk import SimFiles
from devtools.sim.loop import Node, SimLoop, StepPool, context_of
from devtools.sim.moments import TRUNCATION, Moments
from devtools.sim.net import Network
from devtools.sim.tree import SimTree
from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import MetadataError, NoNodeError
from ixion.broker.metadata.topic_node import PartitionState, Replicas, decode_partition_state, decode_topic
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.parts import Options
from ixion.config.sources import load
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition

T = TypeVar("T")

PORT: Final = 9092
DIRECTORY_NAMES: Final = ("one", "two")  # of a broker with several log directories
NUMBER: Final = "{number}"  # in the settings of a job: the broker id
STALL_S: Final = 0.1  # a write to a slow disk takes at most so long
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.retention.hours": "-1",
    "background.threads": "2",
    "log.cleaner.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "zookeeper.connect": "tree:2181",
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.backoff.ms": "200",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "controlled.shutdown.max.retries": "2",
    "controlled.shutdown.retry.backoff.ms": "500",
    "leader.imbalance.check.interval.seconds": "15",
}


class Slot:
    """A broker id: its disk, and its present life if it has one."""

    def __init__(self, number: int, folder: str) -> None:
        self.number = number
        self.folder = folder
        self.host = f"10.0.0.{number}"
        self.files = SimFiles(folder)
        self.node: Node | None = None
        self.broker: Broker | None = None  # once it has started
        self.lives = 0
        self.boots = 1  # of its machine
        self.starts = 0  # of a broker, in all lives: one whose session or disk failed starts again in the same process
        self.started_s = 0.0

    @property
    def alive(self) -> bool:
        return self.node is not None and not self.node.dead

    @property
    def has_lost_a_directory(self) -> bool:
        """One of several: a broker that has lost all of them stops by itself."""
        directories = [] if self.broker is None else self.broker.parts.logs.directories
        return len(directories) > 1 and any(each.state.offline for each in directories)


class World:
    def __init__(self, loop: SimLoop, folder: str, brokers: int = 3, directories: int = 1) -> None:
        self.loop = loop
        self.settings = dict(SETTINGS)
        self._directories = directories  # of each broker, on one disk
        self.network = loop.network = Network(loop, folder)
        self.tree = SimTree(loop, self.network)
        self.folder = folder
        self.slots = {number: Slot(number, os.path.join(folder, str(number))) for number in range(1, brokers + 1)}
        self.bootstrap = ",".join(f"{slot.host}:{PORT}" for slot in self.slots.values())
        self.moments = Moments(loop, self.tree)
        self.clients: list[Node] = []
        self.graves: list[object] = []
        self.may_lose = (
            False  # whether each acknowledged record is on the disks of all brokers, so that one may lose it
        )
        self.faults_begun = 0  # and how many of them are under way:
        self.faults_active = 0
        self.losing = False  # a fault that is under way will make a broker lose its records
        for slot in self.slots.values():
            self.moments.follow_broker(slot.number)
            slot.files.on_truncate = lambda: self.moments.came(TRUNCATION)
            slot.files.on_slow = lambda slot=slot: self._stall(slot)  # type: ignore[misc]

    # Clients.

    def silence(self) -> None:
        """Clients stand still, so that nothing new is written."""
        for node in self.clients:
            node.paused = True

    def speak(self) -> None:
        for node in self.clients:
            if node.paused:
                self.loop.resume(node)

    def _stall(self, slot: Slot) -> None:
        node = slot.node
        if node is not None and not node.dead and not node.paused:
            node.paused = True
            self.loop.call_later(self.loop.random.uniform(0, STALL_S), self.loop.resume, node, context=context_of(None))

    def note(self, kind: str, text: str) -> None:
        self.loop.trace.add(self.loop.now_s, kind, text)

    # Lives.

    def start(self, number: int) -> None:
        slot = self.slots[number]
        if slot.alive:
            return
        slot.lives += 1
        slot.started_s = self.loop.now_s
        slot.node = node = Node(f"b{number}.{slot.lives}", slot.host)
        node.slow_disk = slot.files.slow
        slot.broker = None
        self.note("note", f"start {node}")
        self.loop.spawn(node, self._live(slot, node))

    def _paths(self, slot: Slot) -> list[str]:
        if self._directories == 1:
            return [slot.folder]
        return [os.path.join(slot.folder, name) for name in DIRECTORY_NAMES[: self._directories]]

    async def _live(self, slot: Slot, node: Node) -> None:
        settings = {
            **{name: value.replace(NUMBER, str(slot.number)) for name, value in self.settings.items()},
            "broker.id": str(slot.number),
            "log.dirs": ",".join(self._paths(slot)),
            "listeners": f"PLAINTEXT://{slot.host}:{PORT}",
        }
        loaded = load(assignments=[f"{name}={value}" for name, value in settings.items()])
        while True:
            options = Options(
                allow_remote=True,
                files=slot.files,
                make_pool=lambda _count, _name: StepPool(self.loop),
                boot_id=lambda: f"boot {slot.boots}",
                open_session=lambda timeout_ms: self.tree.open_session(node, timeout_ms),
            )
            broker = Broker(loaded, options)
            try:
                await broker.start()
            except StartupError as error:
                self.note("note", f"{node} does not start: {error}"[:200].replace(self.folder, ""))
                await asyncio.sleep(1)
                continue
            slot.broker = broker
            slot.starts += 1
            self.note("note", f"{node} started")
            await broker.failed.wait()
            self.note("note", f"{node} stops itself")
            slot.broker = None
            await broker.stop(1_000)

    def kill(self, number: int, vanish: bool = False, power: bool = False) -> None:
        """As kill -9; with `vanish` its host is gone as well, with `power` so is what was not synced."""
        slot = self.slots[number]
        node = slot.node
        if node is None or node.dead:
            return
        node.dead = True
        self.graves += [node, slot.broker]
        self.network.died(node, vanish or power)
        self._unlock(slot)
        if power:
            slot.boots += 1
            slot.files.lose_power()
        slot.broker = None

    async def stop(self, number: int) -> None:
        """As SIGTERM: a clean stop, and then the process ends."""
        slot = self.slots[number]
        node, broker = slot.node, slot.broker
        if node is None or node.dead or broker is None:
            return
        slot.broker = None
        node.stopping = True
        task = self.loop.spawn(node, broker.stop(1_000))
        await asyncio.wait([task], timeout=60)
        if slot.node is node:
            if not task.done():
                self.note("note", f"{node} did not stop in 60 s")
            self.kill(number)

    def _unlock(self, slot: Slot) -> None:
        """The system drops the locks of a process that ended."""
        from ixion.broker.log import lock

        for path in self._paths(slot):
            lock._held.discard(os.path.realpath(path))

    def pause(self, number: int) -> None:
        node = self.slots[number].node
        if node is not None and not node.dead:
            node.paused = True

    def resume(self, number: int) -> None:
        node = self.slots[number].node
        if node is not None and node.paused:
            self.loop.resume(node)

    # What the tree and the brokers know.

    def state(self, key: TopicPartition) -> PartitionState | None:
        try:
            return decode_partition_state(*key, self.tree.own.get(paths.partition_state(*key)).data)
        except NoNodeError:
            return None

    def replicas(self, key: TopicPartition) -> Replicas:
        """As assigned; none if there is no such partition."""
        try:
            node = decode_topic(key[0], self.tree.own.get(paths.topic(key[0])).data)
        except NoNodeError:
            return Replicas(all=())
        return node.partitions.get(key[1], Replicas(all=()))

    def controller(self) -> int:
        """-1: none."""
        from ixion.broker.metadata.cluster_node import decode_controller

        try:
            return int(decode_controller(self.tree.own.get(paths.CONTROLLER).data))
        except NoNodeError:
            return -1

    def leader(self, key: TopicPartition) -> int:
        state = self.state(key)
        return -1 if state is None else state.leader

    def running(self) -> list[tuple[int, Broker]]:
        return [(number, slot.broker) for number, slot in self.slots.items() if slot.alive and slot.broker is not None]

    async def create_topic(
        self, name: str, partitions: int, *, replication: int = 3, config: dict[str, str] | None = None
    ) -> None:
        """By the controller; tried until it is done."""
        wish = NewTopic(name=name, partitions=partitions, replication=replication, config=config or {})
        while True:
            slot = self.slots.get(self.controller())
            if slot is not None and slot.alive and slot.broker is not None:
                task = self.loop.spawn(slot.node, slot.broker.parts.controller.topics.create([wish]))
                done, _ = await asyncio.wait([task], timeout=30)
                if done and task.exception() is None:
                    (outcome,) = task.result()
                    if outcome.code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                        return
                elif done and not isinstance(task.exception(), KafkaError):
                    raise task.exception()  # type: ignore[misc]
            await asyncio.sleep(0.3)

    async def by_controller(self, work: Callable[[Any], Awaitable[T]], limit_s: float = 5) -> T | None:
        """What the controller answers, if there is one and it answers in time."""
        slot = self.slots.get(self.controller())
        if slot is None or not slot.alive or slot.broker is None:
            return None

        async def ask(broker: Broker) -> T:
            return await work(broker.parts.controller)

        task = self.loop.spawn(slot.node, ask(slot.broker))
        done, _ = await asyncio.wait([task], timeout=limit_s)
        if not done or task.cancelled():
            return None
        error = task.exception()
        if error is not None and not isinstance(error, (KafkaError, MetadataError)):
            raise error
        return None if error is not None else task.result()

    async def assign(self, key: TopicPartition, replicas: tuple[int, ...]) -> None:
        await self.by_controller(lambda controller: controller.reassignments.alter({key: replicas}, True))

    async def make_leader(self, key: TopicPartition, broker: int) -> None:
        """A preferred election, with this replica put first."""
        await self.assign(key, tuple(sorted(self.slots, key=lambda number: (number != broker, number))))
        await self.by_controller(lambda controller: controller.leaders.elect([key], False))

    async def until(self, condition: Any, limit_s: float) -> bool:
        end_s = self.loop.now_s + limit_s
        while not condition():
            if self.loop.now_s > end_s:
                return False
            await asyncio.sleep(0.1)
        return True

    def all_know_all(self) -> bool:
        running, controller = self.running(), self.controller()
        return (
            controller >= 0
            and len(running) == len(self.slots)
            and all(
                set(broker.parts.image.brokers) == set(self.slots) and broker.parts.image.controller_id == controller
                for _, broker in running
            )
        )

    def close(self) -> None:
        for slot in self.slots.values():
            if slot.alive:
                self.kill(slot.number)
        shutil.rmtree(self.folder, ignore_errors=True)
