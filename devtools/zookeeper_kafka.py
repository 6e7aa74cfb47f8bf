"""A real Apache Kafka 3.9 broker in ZooKeeper mode, a member of a cluster.

    with RealZooKeeper(tmp_path) as zookeeper, ZooKeeperKafka(2, f"{zookeeper.connect}/kafka", tmp_path / "2") as kafka:
        ...

Its output, warnings and errors, is in `<data dir>/broker.out`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devtools.kafka import RealKafka

VERSION: Final = "3.9.1"


class ZooKeeperKafka(RealKafka):
    def __init__(
        self,
        broker_id: int,
        connect: str,
        data_dir: Path,
        *,
        heap: str = "256m",
        quick: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(VERSION, data_dir, heap=heap, quick=quick, properties=properties)
        self.broker_id = broker_id
        self.connect = connect
        self._earlier = ""

    def start(self) -> None:
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Start the process, and do not wait for it to answer."""
        self.format()
        self.launch()

    def wait(self) -> None:
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def format(self) -> None:
        """There is nothing to be formatted. The output of an earlier life is kept."""
        if self._output.exists():
            self._earlier += self._output.read_text(errors="replace")
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._file.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9: it leaves ZooKeeper when its session expires."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def output(self) -> str:
        """Warnings and errors of all its lives."""
        return self._earlier + self._output.read_text(errors="replace")

    def _settings(self) -> dict[str, str]:
        return {
            "broker.id": str(self.broker_id),
            "zookeeper.connect": self.connect,
            "zookeeper.session.timeout.ms": "9000",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data_dir / "logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "inter.broker.protocol.version": "3.9",
            **self.properties,
        }
