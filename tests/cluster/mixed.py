"""A cluster of Apache Kafka 3.9.1 and ixion on one real ZooKeeper, and a load that knows what was acknowledged.

Broker 1 is Apache Kafka, broker 2 is `ixion serve` in a process of its own. Both can be killed and started again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, ElectionType, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.kafka import answers, free_port
from devtools.zookeeper import RealZooKeeper
from devtools.zookeeper_kafka import ZooKeeperKafka
from tests.broker.served import environment

KAFKA, IXION = 1, 2
PATIENCE_S = 60.0
SESSION_MS = "3000"
SETTINGS = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
    "replica.lag.time.max.ms": "5000",
    "log.cleaner.dedupe.buffer.size": "16777216",
}


class Ixion:
    """`ixion serve` in a process."""

    def __init__(self, connect: str, data: Path, number: int = IXION, settings: Mapping[str, str] = SETTINGS) -> None:
        self.port = free_port()
        self._number = number
        self._settings = settings
        self.data = data
        self._connect = connect
        self._process: subprocess.Popen[bytes] | None = None
        data.mkdir(parents=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        return (self.data / "broker.out").read_text(errors="replace")

    def start(self) -> None:
        settings = {
            "broker.id": str(self._number),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data / "logs"),
            "zookeeper.connect": self._connect,
            "delivery.delay.topics": "delayed-.*:record",  # Kafka's controller knows no such setting of a topic
            **self._settings,
        }
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        with (self.data / "broker.out").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ixion", "serve", "--metrics-port", "off", *words],
                cwd=self.data,
                env=environment() | {"IXION_LOG_LEVEL": os.environ.get("IXION_LOG_LEVEL", "INFO")},
                stdout=output,
                stderr=output,
            )
        wait_until(lambda: self._process is None or self._process.poll() is not None or answers("127.0.0.1", self.port))
        assert self._process.poll() is None, self.output

    def kill(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


class Mixed:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.zookeeper = RealZooKeeper(path / "zookeeper")
        connect = f"{self.zookeeper.connect}/mixed"
        self.kafka = ZooKeeperKafka(KAFKA, connect, path / "kafka", properties=SETTINGS)
        self.ixion = Ixion(connect, path / "ixion")

    def __enter__(self) -> Self:
        self.zookeeper.__enter__()
        try:
            self.kafka.start()
            self.ixion.start()
            wait_until(lambda: self.brokers() == [KAFKA, IXION])
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        try:
            self.ixion.stop()
        finally:
            try:
                self.kafka.stop()
            finally:
                self.zookeeper.stop()

    @property
    def bootstrap(self) -> str:
        return f"{self.kafka.bootstrap},{self.ixion.bootstrap}"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def brokers(self) -> list[int]:
        return sorted(self.admin().list_topics(timeout=10).brokers)

    def create(self, topic: str, *replicas: tuple[int, int], **config: str) -> None:
        wish = NewTopic(
            topic,
            num_partitions=len(replicas),
            replica_assignment=[list(each) for each in replicas],
            config={name.replace("_", "."): value for name, value in config.items()},
        )
        admin = self.admin()  # its requests end with it
        admin.create_topics([wish])[topic].result(PATIENCE_S)
        for bootstrap in (self.kafka.bootstrap, self.ixion.bootstrap):
            wait_until(lambda at=bootstrap: topic in list_topics(at))  # type: ignore[misc]
        self.await_isr(topic, 2)

    def state(self, topic: str) -> dict[int, tuple[int, list[int]]]:
        """Leader and in-sync replicas of each partition."""
        found = self.admin().list_topics(topic, timeout=10).topics[topic]
        return {number: (each.leader, sorted(each.isrs)) for number, each in found.partitions.items()}

    def await_isr(self, topic: str, size: int) -> None:
        wait_until(lambda: all(len(isr) == size for _, isr in self.state(topic).values()), lambda: self.state(topic))

    def await_leader(self, topic: str, leader: int) -> None:
        wait_until(lambda: {each for each, _ in self.state(topic).values()} == {leader}, lambda: self.state(topic))

    def prefer(self, *topics: str) -> None:
        """The preferred replicas lead again: even partitions on Apache Kafka, odd ones on ixion.

        A controller refuses an election for as long as it takes the preferred replica for offline or out of sync.
        """
        for topic in topics:
            self.await_isr(topic, 2)

        def led_elsewhere() -> list[TopicPartition]:
            return [
                TopicPartition(topic, number)
                for topic in topics
                for number, (leader, _) in self.state(topic).items()
                if leader != (KAFKA, IXION)[number % 2]
            ]

        admin = self.admin()

        def preferred_lead() -> bool:
            moved = led_elsewhere()
            if moved:
                admin.elect_leaders(ElectionType.PREFERRED, moved).result(PATIENCE_S)
            return not moved

        wait_until(preferred_lead, lambda: [self.state(topic) for topic in topics])

    def records(self, topic: str, partitions: int) -> dict[int, list[tuple[int, bytes]]]:
        """(offset, value) of all that consumers see."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.partition.eof": True, "log_level": 0}
        )
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        found: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(partitions)}
        left, end = set(found), time.monotonic() + PATIENCE_S
        while left:
            assert time.monotonic() < end, f"{left} of {topic} cannot be read to their ends"
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                continue
            found[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
        consumer.close()
        return found

    def logs(self, topic: str, partition: int) -> tuple[bytes, bytes]:
        """Every byte of the partition, of Apache Kafka's log and of ours."""
        found = []
        for data in (self.kafka.data_dir, self.ixion.data):
            folder = data / "logs" / f"{topic}-{partition}"
            found.append(b"".join(file.read_bytes() for file in sorted(folder.glob("*.log"))))
        return found[0], found[1]

    def await_equal_logs(self, topic: str, partition: int) -> None:
        def equal() -> bool:
            theirs, ours = self.logs(topic, partition)
            return theirs == ours

        wait_until(equal, lambda: f"{topic}-{partition}: {[len(log) for log in self.logs(topic, partition)]} bytes")


def list_topics(bootstrap: str) -> list[str]:
    return list(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=10).topics)


def wait_until(done: Callable[[], bool], said: Callable[[], object] = lambda: "") -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, f"it did not happen within {PATIENCE_S} s: {said()}"
        time.sleep(0.05)


class Load:
    """An idempotent producer with acks=all on a thread of its own, which writes numbers to every partition in turn."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.acknowledged: dict[int, list[tuple[int | None, bytes]]] = {number: [] for number in range(partitions)}
        self.failed: list[str] = []
        self.sent = 0
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": int(PATIENCE_S * 1_000),
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()
        if kind is None:
            assert self._producer.flush(PATIENCE_S) == 0

    @property
    def count(self) -> int:
        return sum(len(each) for each in self.acknowledged.values())

    def await_more(self, count: int) -> None:
        target = self.count + count
        wait_until(lambda: self.count >= target, lambda: f"{self.count} of {target} acknowledged, {self.failed[:3]}")

    def _run(self) -> None:
        while not self._end.is_set():
            for partition in range(self._partitions):
                self._producer.produce(self._topic, b"%d" % self.sent, partition=partition, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0.001)
            if len(self._producer) > 2_000:
                self._producer.poll(0.05)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            # A record whose first answer was lost is acknowledged as a repeat, without its offset.
            self.acknowledged[message.partition() or 0].append((message.offset(), message.value() or b""))
        else:
            self.failed.append(str(error))


def check_kept(load: Load, found: dict[int, list[tuple[int, bytes]]]) -> None:
    """Every acknowledged record is where it was acknowledged; nothing is out of order or there twice."""
    for partition, acknowledged in load.acknowledged.items():
        there = {*found[partition], *((None, value) for _, value in found[partition])}
        lost = [record for record in acknowledged if record not in there]
        assert not lost, f"partition {partition}: {len(lost)} of {len(acknowledged)} lost: {lost[:5]}"
        numbers = [int(value) for _, value in found[partition]]
        assert numbers == sorted(set(numbers)), f"partition {partition} is out of order, or has repeats"
