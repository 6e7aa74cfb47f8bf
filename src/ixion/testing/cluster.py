"""Several brokers in the process of a test: one Kafka cluster without ZooKeeper and without a JVM.

    with Cluster(3) as cluster:
        cluster.create_topic("orders", partitions=3)      # on all brokers, min.insync.replicas 2
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        cluster.kill(cluster.leader("orders", 0))         # a fail-over, now
        cluster.restart()                                 # all brokers that are not running

They are the real brokers, with ids from 1 on, each on a thread and an event loop of its own. They share a tree in
memory instead of ZooKeeper. They run in one process, so this is for tests of behaviour, not of speed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final, Self

from ixion.broker.metadata.image import ClusterImage, PartitionImage
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing.broker import _memory
from ixion.testing.member import Cuts, Member
from ixion.testing.shared_tree import SharedTree

NO_ZOOKEEPER: Final = "shared-tree:2181"  # makes brokers expect others; the name is never resolved
WAIT_S: Final = 60.0
LOOK_S: Final = 0.002


class Cluster:
    """`settings` are those of every broker, by Kafka's names."""

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, Any] | None = None,
        *,
        memory: bool = False,
        metrics: bool = False,
    ) -> None:
        if brokers < 1:
            raise ValueError("a cluster has at least one broker")
        self._count = brokers
        self._given = dict(settings or {})
        self._memory = memory
        self._metrics = metrics
        self._folder = ""
        self._tree: SharedTree | None = None
        self._cuts = Cuts()
        self.brokers: dict[int, Member] = {}  # by id, with those that are not running

    def start(self) -> Self:
        """Returns when every broker knows all the others."""
        if self._tree is not None:
            raise RuntimeError("the cluster is running already; stop() it first")
        self._folder = tempfile.mkdtemp(prefix="ixion-cluster-", dir=_memory() if self._memory else None)
        self._tree = tree = SharedTree()
        settings = {**defaults(self._count), **self._given}
        self.brokers = {
            number: Member(number, settings, os.path.join(self._folder, str(number)), tree, self._cuts, self._metrics)
            for number in range(1, self._count + 1)
        }
        try:
            self._each(self.brokers.values(), lambda member: member.start())
            self.wait(lambda: self._all_know(self.brokers.keys()), "every broker knows all the others")
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all brokers and delete their data. Calling it twice is harmless."""
        if self._tree is None:
            return
        try:
            # Kill them: when all stop, no leader can move to another broker.
            self._each(self._live(), lambda member: member.kill())
        finally:
            self._tree.close()
            self._tree = None
            self._cuts = Cuts()
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Using the cluster.

    @property
    def bootstrap(self) -> str:
        """Addresses of the running brokers, for `bootstrap.servers`."""
        return ",".join(member.bootstrap for member in self._live())

    @property
    def controller(self) -> int:
        """The id of the broker that is the controller; waits for a running election."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [number for number, real in self._reals() if getattr(real.parts.controller, "is_active", False)]
            return len(found) == 1

        self.wait(look, "a broker is the controller")
        return found[0]

    def create_topic(self, name: str, partitions: int = 1, replication: int | None = None, **config: Any) -> None:
        """With a replica on every broker, or `replication`. Returns when every running broker knows its leaders."""
        copies = self._count if replication is None else replication
        self.brokers[self.controller].create_topic(name, partitions, replication=copies, **config)

        def known() -> bool:
            images = [real.parts.image for _, real in self._reals()]
            return all(
                (partition := image.partition(name, number)) is not None and partition.leader >= 0
                for image in images
                for number in range(partitions)
            )

        self.wait(known, f"every broker knows the leaders of topic {name!r}")

    def leader(self, topic: str, partition: int = 0) -> int:
        """The id of the broker that leads the partition; waits for a running election."""
        found: list[int] = []

        def look() -> bool:
            state = self._state(topic, partition)
            found[:] = [] if state is None else [state.leader]
            return bool(found) and found[0] in self._live_ids() & self._registered()

        self.wait(look, f"partition {partition} of topic {topic!r} has a leader")
        return found[0]

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """The in-sync replicas that the controller knows."""
        state = self._state(topic, partition)
        if state is None:
            raise LookupError(f"topic {topic!r} has no partition {partition}")
        return state.isr

    # Causing faults.

    def kill(self, broker: int, *, expire: bool = True) -> None:
        """End a broker as kill -9 ends a process. Its session expires at once, so that tests need not wait for the
        fail-over; with expire=False it expires after zookeeper.session.timeout.ms."""
        self._member(broker).kill()
        if expire:
            self.expire(broker)

    def shut_down(self, broker: int) -> None:
        """Stop a broker cleanly: its leaders move to other brokers first."""
        self._member(broker).stop()

    def pause(self, broker: int, *, expire: bool = False) -> None:
        """Freeze a broker, as SIGSTOP does, until `resume`. If that takes longer than zookeeper.session.timeout.ms, its
        session expires; with expire=True at once."""
        self._member(broker).pause()
        if expire:
            self.expire(broker)

    def resume(self, broker: int | None = None) -> None:
        """Resume a paused broker; without a number, all of them."""
        for member in self.brokers.values() if broker is None else [self._member(broker)]:
            member.resume()

    def expire(self, broker: int) -> None:
        """Expire the session of a broker, as ZooKeeper does with one that it has not heard from for too long."""
        self._member(broker)
        assert self._tree is not None
        self._tree.expire(broker)

    def cut(self, one: int, other: int) -> None:
        """Break the connections between two brokers and refuse new ones until `heal`. Both still reach the tree, the
        other brokers and your clients."""
        self._cuts.cut(self._member(one).broker_id, self._member(other).broker_id)

    def heal(self) -> None:
        """Let all brokers reach each other again."""
        self._cuts.heal()

    def restart(self, broker: int | None = None) -> None:
        """Start a broker again with its data, after stopping it if it runs; without a number, all that are not running.
        Returns when every running broker knows it."""
        if broker is None:
            chosen = [member for member in self.brokers.values() if not member.running]
        else:
            chosen = [self._member(broker)]
            chosen[0].stop()
        self._each(chosen, lambda member: member.start())
        came = {member.broker_id for member in chosen}

        def known() -> bool:
            """A paused broker may be registered or not; a killed one is registered until its session expires."""
            registered = self._registered() & self.brokers.keys()  # a test may register others
            return came <= registered and self._all_know(registered)

        self.wait(known, "every broker knows the ones that came back")

    def wait_healthy(self, timeout_s: float = WAIT_S) -> None:
        """Wait until every replica of every partition is in sync. TimeoutError names those that are not."""

        def behind() -> list[str]:
            image = self._image()
            return [
                f"{topic.name}-{partition.number} (leader {partition.leader}, in sync {list(partition.isr)})"
                for topic in image.topics.values()
                for partition in topic.partitions
                if partition.leader < 0 or set(partition.isr) != set(partition.replicas)
            ]

        self.wait(lambda: not behind(), lambda: f"all replicas are in sync: {', '.join(behind())}", timeout_s)

    def wait(self, condition: Callable[[], bool], what: str | Callable[[], str], timeout_s: float = WAIT_S) -> None:
        """Wait until a condition is true; TimeoutError with `what` if it is not in time."""
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not true within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
            time.sleep(LOOK_S)

    # Internals.

    def _member(self, broker: int) -> Member:
        if broker not in self.brokers or self._tree is None:
            known = ", ".join(map(str, self.brokers)) if self._tree is not None else "none, it is not running"
            raise ValueError(f"the cluster has no broker {broker}; it has {known}")
        return self.brokers[broker]

    def _live(self) -> list[Member]:
        return [member for member in self.brokers.values() if member.running]

    def _live_ids(self) -> set[int]:
        return {member.broker_id for member in self._live()}

    def _registered(self) -> set[int]:
        assert self._tree is not None
        return self._tree.registered()

    def _reals(self) -> list[tuple[int, RealBroker]]:
        """The running brokers that are not paused. This thread reads their images one attribute at a time."""
        return [
            (member.broker_id, real)
            for member in self._live()
            if not member.paused and (real := member._broker) is not None
        ]

    def _image(self) -> ClusterImage:
        return dict(self._reals())[self.controller].parts.image

    def _state(self, topic: str, partition: int) -> PartitionImage | None:
        return self._image().partition(topic, partition)

    def _all_know(self, wanted: Iterable[int]) -> bool:
        expected = set(wanted)
        images = [real.parts.image for _, real in self._reals()]
        return all(set(image.brokers) == expected and image.controller_id in expected for image in images)

    def _each(self, members: Iterable[Member], work: Callable[[Member], object]) -> None:
        """Run `work` for all members at once; raise the first error when all are done."""
        with ThreadPoolExecutor(max(self._count, 1), "ixion-cluster") as pool:
            for done in [pool.submit(work, member) for member in members]:
                done.result()


def defaults(brokers: int) -> dict[str, str]:
    """Differences from a single test broker: three replicas, of which two must have a record."""
    copies = min(brokers, 3)
    enough = min(copies, 2)
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(enough),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(enough),
        "zookeeper.connect": NO_ZOOKEEPER,
        "controlled.shutdown.retry.backoff.ms": "200",
    }
