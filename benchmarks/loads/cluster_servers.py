"""Three brokers on a real ZooKeeper, of ixion or of Apache Kafka 3.9.1, each a process that can be killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata

from benchmarks.loads.broker_servers import Server
from devtools.kafka import answers, free_port
from devtools.zookeeper import RealZooKeeper
from devtools.zookeeper_kafka import ZooKeeperKafka
from ixion.broker.metadata import paths
from ixion.broker.metadata.zookeeper.session import open_session

SESSION_MS = 6_000
TICK_MS = 300  # of ZooKeeper: sessions end at multiples of it, and last 20 at most
CHROOT = "/bench"
PATIENCE_S = 120.0
SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",  # a leader moves when the measurement moves it
    "controlled.shutdown.retry.backoff.ms": "500",
}


class Broker(Protocol):
    port: int

    @property
    def pid(self) -> int: ...

    def begin(self) -> None:
        """Start the process, and do not wait for it to answer."""

    def kill(self) -> None: ...

    def stop(self) -> None: ...


class IxionBroker:
    def __init__(self, number: int, connect: str, data: Path) -> None:
        self.port = free_port()
        settings = {"broker.id": str(number), "zookeeper.connect": connect, **SETTINGS}
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        serve = [sys.executable, "-m", "ixion", "serve", "--metrics-port", "off"]
        self._command = [*serve, "--port", str(self.port), "--data", str(data), *words]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def begin(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Three:
    """The cluster: brokers 1 to 3."""

    def __init__(self, brokers: dict[int, Broker], zookeeper: RealZooKeeper) -> None:
        self.brokers = brokers
        self._zookeeper = zookeeper
        self._admin: AdminClient | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers.values())

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            quick = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "log_level": 0}
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, **quick})
        return self._admin

    def servers(self) -> list[Server]:
        return [Server(bootstrap="", pid=broker.pid, started=0.0) for broker in self.brokers.values()]

    def cpu_seconds(self) -> float:
        return sum(server.cpu_seconds() for server in self.servers())

    def resident_mb(self) -> float:
        """Of one broker, on average."""
        return sum(server.resident_mb() for server in self.servers()) / len(self.brokers)

    def start(self, number: int) -> float:
        """Seconds until its port answers."""
        broker = self.brokers[number]
        begun = time.perf_counter()
        broker.begin()
        until(lambda: answers("127.0.0.1", broker.port), pause_s=0.005)
        return time.perf_counter() - begun

    def await_ping(self, number: int) -> None:
        """Return when ZooKeeper has just heard of a broker: a session ends SESSION_MS after that, not after a kill."""
        session = asyncio.run(session_of(f"{self._zookeeper.connect}{CHROOT}", number))
        before = self._zookeeper.heard(session)
        until(lambda: self._zookeeper.heard(session) != before, pause_s=0.005)

    def metadata(self) -> ClusterMetadata:
        """By a new client after a failure: librdkafka may go on asking a broker that is gone."""
        try:
            return self.admin.list_topics(timeout=3)
        except KafkaException:
            self._admin = None
            return self.admin.list_topics(timeout=10)

    def controller(self) -> int:
        until(lambda: self.metadata().controller_id in self.brokers)
        return int(self.metadata().controller_id)

    def in_sync(self, brokers: int = 3) -> bool:
        """Whether all brokers are there, and every replica is in sync."""
        found = self.metadata()
        parts = [part for topic in found.topics.values() for part in topic.partitions.values()]
        return len(found.brokers) == brokers and all(len(part.isrs) == 3 and part.leader >= 0 for part in parts)

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.kill()


def until(holds: Callable[[], bool], pause_s: float = 0.02) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if holds():
                return
        except Exception:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise TimeoutError("the cluster is not as it should be")
        time.sleep(pause_s)


async def session_of(connect: str, broker: int) -> int:
    """The id of the session by which a broker is registered."""
    session = await open_session(connect, SESSION_MS)
    try:
        stat = await session.exists(paths.broker(broker))
    finally:
        await session.close()
    if stat is None:
        raise RuntimeError(f"broker {broker} is not registered")
    return stat.owner


@contextmanager
def cluster(make: Callable[[int, str, Path], Broker]) -> Iterator[Three]:
    with tempfile.TemporaryDirectory(prefix="cluster-bench-") as directory:
        path = Path(directory)
        with RealZooKeeper(path / "zookeeper", tick_ms=TICK_MS) as zookeeper:
            connect = f"{zookeeper.connect}{CHROOT}"
            three = Three({number: make(number, connect, path / str(number)) for number in (1, 2, 3)}, zookeeper)
            try:
                yield three
            finally:
                three.stop()


def ixion(number: int, connect: str, data: Path) -> Broker:
    return IxionBroker(number, connect, data)


def apache_kafka(number: int, connect: str, data: Path) -> Broker:
    """With the heap of its start script."""
    return ZooKeeperKafka(number, connect, data, heap="1g", quick=False, properties=SETTINGS)
