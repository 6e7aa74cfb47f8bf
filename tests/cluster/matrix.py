"""`make judges-matrix`: every role on Apache Kafka and on ixion, killed with SIGKILL under load, beside the other.

Brokers 1 and 2 are Apache Kafka 3.9.1, brokers 3 and 4 are ixion, on one real ZooKeeper. A cell is a role and the
implementation that has it: `leader-ixion`, `follower-kafka` and so on. Its broker is killed while a producer with
acks=all, a group and transactions run, the others take its roles over, and it comes back. In the end every acknowledged
record is there once and in order, transactions are whole, the group has read all, and all replicas are the same bytes.

    python -m tests.cluster.matrix                       # all ten cells
    python -m tests.cluster.matrix leader-ixion controller-kafka
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools import kafka
from devtools.zookeeper import RealZooKeeper
from devtools.zookeeper_kafka import ZooKeeperKafka
from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.zookeeper.session import open_session
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from ixion.language.model.placement import partition_of
from tests.cluster import mixed
from tests.cluster.mixed import Ixion, Load, check_kept, wait_until
from tests.cluster.move import Transactions, consume, read_all
from tests.names import drawn

BROKERS: Final = {1: "kafka", 2: "kafka", 3: "ixion", 4: "ixion"}
VICTIMS: Final = {"kafka": 1, "ixion": 3}
ROLES: Final = ("leader", "follower", "controller", "groups", "transactions")
START_S: Final = 300.0  # for Apache Kafka or ZooKeeper to answer, on a busy machine
ATTEMPTS: Final = 3
CELLS: Final = [f"{role}-{kind}" for role in ROLES for kind in VICTIMS]
SETTINGS: Final = {
    **mixed.SETTINGS,
    "zookeeper.session.timeout.ms": "9000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}


class Fleet:
    def __init__(self, home: Path) -> None:
        self._stack = ExitStack()
        self.zookeeper = self._stack.enter_context(RealZooKeeper(home / "zookeeper"))
        connect = f"{self.zookeeper.connect}/matrix"
        self.brokers: dict[int, ZooKeeperKafka | Ixion] = {
            number: ZooKeeperKafka(number, connect, home / str(number), properties=SETTINGS)
            if kind == "kafka"
            else Ixion(connect, home / str(number), number, SETTINGS)
            for number, kind in BROKERS.items()
        }
        self.connect = connect
        for broker in self.brokers.values():
            self._stack.callback(broker.stop)
            begin(broker)
        wait_until(lambda: len(self.admin().list_topics(timeout=30).brokers) == len(BROKERS))
        for internal in (GROUP_OFFSETS, TRANSACTION_STATE):
            self.create(internal, [around(number) for number in BROKERS], **{"cleanup.policy": "compact"})

    def close(self) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(self, topic: str, replicas: list[list[int]], **config: str) -> None:
        wish = NewTopic(topic, num_partitions=len(replicas), replica_assignment=replicas, config=config)
        admin = self.admin()
        admin.create_topics([wish])[topic].result(60)
        self.await_healthy()

    def unhealthy(self) -> list[str]:
        return [
            f"{name}-{number}: leader {each.leader}, in sync {each.isrs} of {each.replicas}"
            for name, topic in self.admin().list_topics(timeout=30).topics.items()
            for number, each in topic.partitions.items()
            if each.leader < 0 or set(each.isrs) != set(each.replicas)
        ]

    def await_healthy(self) -> None:
        wait_until(lambda: not self.unhealthy(), self.unhealthy)

    def prefer(self) -> None:
        """The first replicas lead."""

        def astray() -> list[TopicPartition]:
            found = self.admin().list_topics(timeout=30).topics
            return [
                TopicPartition(name, number)
                for name, topic in found.items()
                for number, each in topic.partitions.items()
                if each.leader != each.replicas[0]
            ]

        self.await_healthy()
        moved = astray()
        if moved:
            admin = self.admin()
            admin.elect_leaders(ElectionType.PREFERRED, moved).result(60)
        wait_until(lambda: not astray(), astray)

    def controller(self) -> int:
        return int(self.admin().list_topics(timeout=30).controller_id)

    def make_controller(self, number: int) -> None:
        """As an operator does it: `/controller` is deleted until the wanted broker is elected."""

        async def depose() -> None:
            session = await open_session(self.connect, 6_000)
            try:
                await session.delete(paths.CONTROLLER)
            except NoNodeError:
                pass
            await session.close()

        def elected() -> bool:
            if self.controller() == number:
                return True
            asyncio.run(depose())
            wait_until(lambda: self.controller() > 0)
            return False

        wait_until(elected, self.controller)

    def logs(self, topic: str, partition: int) -> dict[int, bytes]:
        """Every byte of the partition, of each replica."""
        found = {}
        for number, broker in self.brokers.items():
            data = broker.data_dir if isinstance(broker, ZooKeeperKafka) else broker.data
            folder = data / "logs" / f"{topic}-{partition}"
            if folder.is_dir():
                found[number] = b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))
        return found


def begin(broker: ZooKeeperKafka | Ixion) -> None:
    """A JVM that is starved of processor time may not answer in time: it gets a second chance, and a third."""
    for _ in range(ATTEMPTS - 1):
        try:
            broker.start()
            return
        except RuntimeError as error:
            print(f"started again: {str(error).splitlines()[0]}", flush=True)
            broker.stop()
    broker.start()


def around(first: int) -> list[int]:
    """Three replicas of both kinds, with this preferred leader; the other kind comes second."""
    other = [number for number, kind in BROKERS.items() if kind != BROKERS[first]]
    own = [number for number, kind in BROKERS.items() if kind == BROKERS[first] and number != first]
    return [first, other[first % 2], own[0]]


def named(prefix: str, broker: int) -> str:
    """A drawn group or transactional id whose coordinator is that broker, as Kafka counts."""
    while True:
        name = drawn(prefix)
        if partition_of(name, len(BROKERS)) == broker - 1:
            return name


def run(fleet: Fleet, cell: str) -> str:
    role, kind = cell.split("-")
    victim = VICTIMS[kind]
    others = [number for number in BROKERS if number != victim]
    stranger = next(number for number in others if BROKERS[number] != kind)
    leaders = {"leader": [victim], "follower": [stranger]}.get(role, others)
    fleet.create(cell, [around(leader) for leader in leaders for _ in range(2)])
    fleet.create(f"{cell}.transacted", [around(leaders[0]), around(stranger)])
    fleet.prefer()
    if role == "controller":
        fleet.make_controller(victim)
    else:
        fleet.make_controller(stranger)
    coordinators = {"groups": victim, "transactions": victim}
    group = named(f"{cell}-g", coordinators["groups"] if role == "groups" else stranger)
    transactional = named(f"{cell}-t", coordinators["transactions"] if role == "transactions" else stranger)
    over, seen = threading.Event(), dict[int, int]()
    partitions = 2 * len(leaders)
    reader = threading.Thread(target=consume, args=(fleet.bootstrap, over, seen, cell, group))
    reader.start()
    transactions = Transactions(fleet.bootstrap, f"{cell}.transacted", transactional)
    try:
        with Load(fleet.bootstrap, cell, partitions) as load:
            load.await_more(500)
            more(lambda: transactions.committed, 3, "transactions")
            fleet.brokers[victim].kill()
            load.await_more(500)
            more(lambda: transactions.committed, 3, "transactions while it is dead")
            more(lambda: sum(seen.values()), 200, "records read while it is dead")
            # While its last session lives, Apache Kafka refuses to start, and does not wait.
            wait_until(lambda: victim not in fleet.admin().list_topics(timeout=30).brokers)
            begin(fleet.brokers[victim])
            fleet.await_healthy()
            load.await_more(500)
        assert not load.failed, load.failed[:3]
        wait_until(lambda: sum(seen.values()) >= load.count, lambda: f"{sum(seen.values())} of {load.count} read")
    finally:
        over.set()
        reader.join()
        committed = transactions.end()
    check_kept(load, read_all(fleet.bootstrap, cell, partitions))
    pairs = read_all(fleet.bootstrap, f"{cell}.transacted", 2)
    assert [value for _, value in pairs[0]] == [value for _, value in pairs[1]], "half a transaction is visible"
    assert len({value for _, value in pairs[0]}) >= committed > 0
    for number in range(partitions):
        wait_until(lambda at=number: len(set(fleet.logs(cell, at).values())) == 1)  # type: ignore[misc]
    return f"{load.count} acknowledged and all there, {committed} transactions, {sum(seen.values())} read by the group"


def more(count: Callable[[], int], by: int, what: str) -> None:
    target = count() + by
    wait_until(lambda: count() >= target, lambda: f"{count()} of {target} {what}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.matrix", description=__doc__)
    parser.add_argument("cells", nargs="*", metavar="CELL", choices=[*CELLS, []], help=f"of {', '.join(CELLS)}")
    given = parser.parse_args()
    failed = 0
    mixed.PATIENCE_S = kafka.START_TIMEOUT_S = START_S
    with tempfile.TemporaryDirectory(prefix="ixion-matrix-") as home:
        fleet = Fleet(Path(home))
        try:
            for cell in given.cells or CELLS:
                try:
                    said = run(fleet, cell)
                except (AssertionError, RuntimeError, KafkaException) as objection:
                    failed += 1
                    said = f"FAILED: {objection}"
                print(f"{cell}: {said}", flush=True)
        finally:
            fleet.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
