"""A real Apache Kafka broker: KRaft, one node, on the loopback address.

    with RealKafka("3.9.1", tmp_path / "data") as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap})

Inside the block the broker answers; after it the process is gone, whatever happened. Its output is in
`<data dir>/broker.out`. A data directory that has been formatted before is opened as it is.
"""

from __future__ import annotations

import base64
import os
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from devtools import jars
from devtools.jvm import QUICK, java_command, run_java
from ixion.cli.cluster.local import free_ports

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
# Of its own topics, 50 partitions each are a hundred logs to make before the first group or transaction.
FEW = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}


class RealKafka:
    def __init__(
        self,
        version: str,
        data_dir: Path,
        *,
        port: int = 0,
        heap: str = "512m",
        quick: bool = True,
        listeners: Mapping[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
        cluster_id: str | None = None,
    ) -> None:
        """PORT 0 takes a free one; PROPERTIES are added to server.properties, or replace what is set here.

        QUICK starts it sooner and makes it slower later on: for tests, not to be measured against.
        Beside the plain one at PORT, LISTENERS are opened: protocol (SASL_SSL …) -> port.
        """
        self.version = version
        self.data_dir = data_dir
        self.port = port or free_port()
        self.options = [f"-Xmx{heap}", *(QUICK if quick else ())]
        self.listeners = dict(listeners or {})
        self.properties = {**(FEW if quick else {}), **(properties or {})}
        self.cluster_id = cluster_id or new_cluster_id()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def __enter__(self) -> RealKafka:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        self.format()
        self.launch()
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def format(self) -> None:
        """Makes the data directory ready; one that was made before is left as it is."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        settings = self._file
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
        if (self.data_dir / "logs" / "meta.properties").exists():
            return
        run_java(
            "kafka.tools.StorageTool",
            *("format", "--ignore-formatted", "-t", self.cluster_id, "-c", str(settings)),
            classpath=jars.classpath(f"kafka-{self.version}"),
            options=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        )

    def launch(self) -> None:
        """Starts the process and does not wait for it to answer."""
        assert self._process is None, "the broker is running already"
        classpath = jars.classpath(f"kafka-{self.version}")
        command = java_command("kafka.Kafka", str(self._file), classpath=classpath, options=self.options)
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def stop(self, patience_s: float = STOP_TIMEOUT_S) -> None:
        """Ends the process: asked first, killed if it does not listen."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def _file(self) -> Path:
        return self.data_dir / "server.properties"

    @property
    def _output(self) -> Path:
        return self.data_dir / "broker.out"

    def _settings(self) -> dict[str, str]:
        controller = free_port()
        more = "".join(f",{protocol}://127.0.0.1:{port}" for protocol, port in self.listeners.items())
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}{more},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": ",".join(
                ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in self.listeners)]
            ),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir / "logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.properties,
        }

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        end = time.monotonic() + START_TIMEOUT_S
        while not answers("127.0.0.1", self.port):
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"Apache Kafka {self.version} did not start:\n{self._output.read_text()[-3000:]}")
            time.sleep(0.05)


def answers(host: str, port: int) -> bool:
    """True if a broker there replies to ApiVersions (version 0, correlation id 7, client id null)."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            reply = connection.recv(8, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(reply) == 8 and struct.unpack(">i", reply[4:]) == (7,)


def free_port() -> int:
    return free_ports(1)[0]


def new_cluster_id() -> str:
    """A random id as Kafka writes them: 16 bytes in URL-safe base64, not starting with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.UUID(bytes=os.urandom(16), version=4).bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
