"""The processes of the small cluster soak: a tree of ours and three brokers, all behind proxies. Or one broker alone.

Clients and brokers reach a broker through the proxy that it advertises, and each broker reaches the tree through one of
its own. So frames can be spoiled and a broker can be cut off from the tree without root.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from devtools.soak.broken import SOURCES
from devtools.soak.proxy import Proxies
from ixion.cli.cluster.local import READY, free_ports

BROKERS: Final = (1, 2, 3)
WAIT_S: Final = 120.0  # nothing takes a tenth of it on a quiet machine
EXPIRED: Final = b"session expired"
QUICK: Final = {"socket.timeout.ms": 3_000, "reconnect.backoff.max.ms": 200, "log_level": 0}
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": 4_000,
    "replica.lag.time.max.ms": 4_000,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 1,
    "log.segment.bytes": 20_000,  # rolls are among what is interrupted
    "controlled.shutdown.enable": "false",  # all stop at once: no broker is left to lead
}


# Of a broker alone.
ALONE: Final = {
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "offsets.topic.replication.factor": 1,
}


class Machine:
    def __init__(
        self,
        directory: Path,
        proxies: Proxies,
        broken: str | None = None,
        brokers: tuple[int, ...] = BROKERS,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """`broken` is the name of a fault that the brokers are to have, `settings` are more of each."""
        self._directory = directory
        self._proxies = proxies
        self._broken = broken
        self.brokers = brokers
        self._settings = {**SETTINGS, **(ALONE if len(brokers) == 1 else {}), **(settings or {})}
        self._tree_port, *ports = free_ports(1 + len(brokers))
        self._ports = dict(zip(brokers, ports, strict=True))
        self._shown = {broker: proxies.add("127.0.0.1", port) for broker, port in self._ports.items()}
        self.tree_ports = {broker: proxies.add("127.0.0.1", self._tree_port) for broker in brokers}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self._shown.values())
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUICK})

    def data(self, broker: int) -> Path:
        return self._directory / f"broker-{broker}"

    def _log_dirs(self, broker: int) -> str:
        return str(self.data(broker))

    def start(self) -> None:
        if len(self.brokers) > 1:
            tree = ["cluster", "tree", "--data", str(self._directory / "tree"), "--port", str(self._tree_port)]
            self._await_ready("tree", self._begin("tree", ["ixion", *tree]))
        self.start_brokers(*self.brokers)
        until(lambda: len(self.admin.list_topics(timeout=10).brokers) == len(self.brokers), "all brokers")

    def start_brokers(self, *brokers: int) -> None:
        begun = {broker: self._begin(f"broker-{broker}", self._words(broker)) for broker in brokers}
        for broker, log_from in begun.items():
            self._await_ready(f"broker-{broker}", log_from)

    def stop_brokers(self, *brokers: int) -> None:
        """All without arguments. In good order: what they wrote is compared afterwards."""
        for broker in brokers or self.brokers:
            self._processes[f"broker-{broker}"].terminate()
        for broker in brokers or self.brokers:
            self._processes[f"broker-{broker}"].wait(WAIT_S)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def kill(self, broker: int) -> None:
        process = self._processes[f"broker-{broker}"]
        process.kill()
        process.wait()

    @contextmanager
    def paused(self, *brokers: int) -> Iterator[None]:
        for broker in brokers:
            self._processes[f"broker-{broker}"].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for broker in brokers:
                self._processes[f"broker-{broker}"].send_signal(signal.SIGCONT)

    def leads(self, topic: str, partition: int) -> int:
        """-1 if nobody does."""
        return self.admin.list_topics(topic, timeout=10).topics[topic].partitions[partition].leader

    def leader(self, topic: str, partition: int) -> int:
        """Waits for one."""
        found: list[int] = []

        def known() -> bool:
            found[:] = [self.leads(topic, partition)]
            return found[0] in self.brokers

        until(known, f"a leader of {topic}-{partition}")
        return found[0]

    def await_in_sync(self) -> None:
        def in_sync() -> bool:
            found = self.admin.list_topics(timeout=10)
            parts = [part for topic in found.topics.values() for part in topic.partitions.values()]
            count = len(self.brokers)
            return len(found.brokers) == count and all(len(part.isrs) == count for part in parts)

        until(in_sync, "all replicas in sync")

    def _words(self, broker: int) -> list[str]:
        settings = {
            **self._settings,
            "broker.id": broker,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._shown[broker]}",
        }
        if len(self.brokers) > 1:
            settings["zookeeper.connect"] = f"127.0.0.1:{self.tree_ports[broker]}"
        program = ["ixion"] if self._broken is None else ["devtools.soak.broken", self._broken]
        words = [*program, "serve", "--port", str(self._ports[broker]), "--data", self._log_dirs(broker)]
        words += ["--metrics-port", "off", "--log-level", "info"]
        return words + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]

    def _begin(self, name: str, words: list[str]) -> int:
        """How long its log was before."""
        file = self._directory / f"{name}.log"
        log_from = file.stat().st_size if file.exists() else 0
        environment = os.environ | ({} if self._broken is None else {"PYTHONPATH": str(SOURCES)})
        self._commands[name] = words
        with file.open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        return log_from

    def _await_ready(self, name: str, log_from: int) -> None:
        """A broker that stops because its session expired during its start is started again, as by a supervisor: that
        happens on a machine so slow that nothing runs for the time of a session."""
        file = self._directory / f"{name}.log"

        def ready() -> bool:
            process = self._processes[name]
            ended = process.poll() is not None
            text = file.read_bytes()[log_from:]
            if ended and EXPIRED not in text:
                raise RuntimeError(f"{name} did not start: {text[-500:].decode(errors='replace')}")
            if ended:
                self._begin(name, self._commands[name])
            return READY in text and not ended

        until(ready, f"{name} to be ready")


@contextmanager
def machine(directory: Path, proxies: Proxies, broken: str | None) -> Iterator[Machine]:
    made = Machine(directory, proxies, broken)
    try:
        made.start()
        yield made
    finally:
        made.close()


def until(holds: Callable[[], bool], what: str) -> None:
    if not within(WAIT_S, holds):
        raise TimeoutError(f"{what}: not within {WAIT_S:.0f} s")


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Asks again and again. Clients raise errors while nobody leads, which count as no."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(KafkaException):
            if holds():
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
