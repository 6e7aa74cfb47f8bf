"""The smallest cluster soak: three brokers and a tree of ours as processes, each broker behind a proxy, for seconds.

    python -m devtools.soak.small --seed 1

It needs neither root nor a JVM. An idempotent producer writes numbers with acks=all. Meanwhile frames are cut, dropped
and delayed, those between brokers as well, and the leader is killed and comes back. At the end every number that was
acknowledged must be there, once and in its order.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.soak.proxy import Faults, Proxies
from ixion.cli.local_cluster import BrokerProcess, LocalCluster, State, broker_words, free_ports, plan, tree_words
from ixion.cli.local_process import kill

TOPIC: Final = "numbers"
SETTINGS: Final = ["zookeeper.session.timeout.ms=2000", "replica.lag.time.max.ms=3000", "log.segment.bytes=20000"]
FAULTS: Final = Faults(cut=0.03, drop=0.03, delay=0.01)
WAIT_S: Final = 120.0
QUICK: Final = {"socket.timeout.ms": 3_000, "reconnect.backoff.max.ms": 200, "log_level": 0}


@dataclass
class Report:
    acknowledged: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    anomalies: list[str] = field(default_factory=list)


class Writer:
    """Produces the numbers 0, 1, 2 … one after the other, a few of them in flight."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[int] = []
        self.failed: list[str] = []
        self._stop = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 1, **QUICK}
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in count():
            if self._stop.is_set() or self.failed:
                break
            self._producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=self._delivered)
            while len(self._producer) > 5 and not self._stop.is_set() and not self.failed:
                self._producer.poll(0.1)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int(message.value() or b"-1"))
        else:
            self.failed.append(str(error))

    def await_more(self, number: int) -> None:
        wanted = len(self.acknowledged) + number
        until(lambda: len(self.acknowledged) >= wanted or bool(self.failed), f"{number} more acknowledged records")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._producer.flush(WAIT_S):
            self.failed.append("records are neither acknowledged nor refused")


class Machine:
    """The processes, each broker behind a proxy that brokers and clients use alike."""

    def __init__(self, directory: Path, proxies: Proxies) -> None:
        self._cluster = LocalCluster(str(directory))
        self._cluster.make()
        self.state: State = plan(self._cluster.home, 3, 1, None, SETTINGS)
        for broker, port in zip(self.state.brokers, free_ports(3), strict=True):
            broker.port = port
        self._proxies = {broker.number: proxies.add("127.0.0.1", broker.port) for broker in self.state.brokers}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._proxies.values())

    def start(self) -> None:
        cluster, state = self._cluster, self.state
        cluster.start("tree", state.tree, tree_words(cluster.directory, state), state)
        cluster.await_ready("tree", state.tree, 0)
        self.start_brokers(state.brokers)

    def start_brokers(self, brokers: list[BrokerProcess]) -> None:
        cluster, state = self._cluster, self.state
        begun = [(broker, cluster.log_size(broker.name)) for broker in brokers]
        for broker in brokers:
            shown = f"advertised.listeners=PLAINTEXT://127.0.0.1:{self._proxies[broker.number]}"
            words = [*broker_words(cluster.directory, state, broker), "--set", shown]
            cluster.start(broker.name, broker.process, words, state)
        for broker, log_from in begun:
            cluster.await_ready(broker.name, broker.process, log_from)

    def leader(self) -> BrokerProcess:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUICK})
        numbers = {broker.number: broker for broker in self.state.brokers}
        found: list[int] = []

        def known() -> bool:
            found[:] = [admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[0].leader]
            return found[0] in numbers

        until(known, "a leader")
        return numbers[found[0]]

    def stop(self) -> None:
        for process in (*(broker.process for broker in self.state.brokers), self.state.tree):
            kill(process)


@contextmanager
def machine(directory: Path, proxies: Proxies) -> Iterator[Machine]:
    made = Machine(directory, proxies)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def run(directory: Path, seed: int, records: int = 200) -> Report:
    """`records` are acknowledged under each fault before the next one."""
    chance = random.Random(seed)
    report = Report()
    with Proxies() as proxies, machine(directory, proxies) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap, **QUICK})
        until(lambda: len(admin.list_topics(timeout=10).brokers) == 3, "three brokers")
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(60)
        writer = Writer(brokers.bootstrap)
        try:
            writer.await_more(records)
            with proxies.spoiled(FAULTS, chance):
                writer.await_more(records)
            leader = brokers.leader()
            kill(leader.process)
            report.faults["kill"] += 1
            writer.await_more(records)
            with proxies.spoiled(FAULTS, chance):
                brokers.start_brokers([leader])
                writer.await_more(records)
        finally:
            writer.close()
        report.faults.update(proxies.done)
        report.acknowledged = len(writer.acknowledged)
        report.anomalies += writer.failed
        report.anomalies += judged(writer.acknowledged, read_all(brokers.bootstrap))
    return report


def read_all(bootstrap: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge", **QUICK})
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        end = -1

        def known() -> bool:
            nonlocal end
            end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), 10)[1]
            return end >= 0

        until(known, "the end of the partition")
        values: list[int] = []
        deadline = time.monotonic() + WAIT_S
        while consumer.position([TopicPartition(TOPIC, 0)])[0].offset < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(values)} records of {end} were read")
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                values.append(int(message.value() or b"-1"))
        return values
    finally:
        consumer.close()


def judged(acknowledged: list[int], found: list[int]) -> list[str]:
    anomalies = []
    if lost := sorted(set(acknowledged) - set(found)):
        anomalies.append(f"{len(lost)} acknowledged records are lost: {lost[:5]}")
    if len(set(found)) < len(found):
        anomalies.append(f"{len(found) - len(set(found))} records are there twice")
    if list(dict.fromkeys(found)) != sorted(set(found)):
        anomalies.append("the records are in another order than they were sent")
    return anomalies


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            if holds():
                return
        except Exception:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {WAIT_S:.0f} s")
        time.sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m devtools.soak.small")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--records", type=int, default=200, help="to be acknowledged under each fault")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ixion-soak-") as directory:
        report = run(Path(directory), options.seed, options.records)
    print(f"seed {options.seed}: {report.acknowledged} records acknowledged, faults {dict(report.faults)}")
    sys.exit("\n".join(report.anomalies) if report.anomalies else 0)


if __name__ == "__main__":
    main()
