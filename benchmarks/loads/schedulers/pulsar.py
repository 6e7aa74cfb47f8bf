"""Delayed messages of Pulsar standalone (deliver_at, a shared subscription), through its Python client.

The defaults of Pulsar: it looks for due messages each second (delayedDeliveryTickTimeMillis), and may deliver up to a
tick early (isDelayedDeliveryDeliverAtTimeStrict=false). Messages stay in the ledgers of the bookie, which is in the
same process; when each is due is in memory, and is read from the ledgers again after a restart. The settings below are
those of the standalone.conf that Pulsar ships, where they differ from the defaults in its code; one of them says that
the journal is not synced before the acknowledgement. All ports are on the loopback address.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.loads.schedulers.scheduler import PATIENCE_S
from devtools import jars
from devtools.cache import made_once
from devtools.jvm import java_command
from devtools.kafka import free_port
from devtools.programs import PartMissing

JARS = "pulsar-4.0.7"
CLIENT = "3.13.0"
TOPIC = "later"
HEAP = "1g"
RETRY_S = 0.1
STANDALONE = {
    "clusterName": "standalone",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "loadBalancerEnabled": "false",
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "journalMaxGroupWaitMSec": "1",
    "journalSyncData": "false",
    "allowLoopback": "true",
    "listeningInterface": "lo",
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.99",
}
OPENED = (
    *("java.base/java.io", "java.base/java.nio", "java.base/java.util.zip", "java.base/jdk.internal.misc"),
    *("java.base/jdk.internal.platform", "java.management/sun.management"),
    "jdk.management/com.sun.management.internal",
)  # packages that its start script opens to it


def client_module() -> Any:
    """Its client, which nothing else here needs, is brought into the cache and not into the environment."""

    def make(folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--target",
            str(folder),
            f"pulsar-client=={CLIENT}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PartMissing(f"pip could not bring pulsar-client: {done.stderr.strip()[-500:]}")

    version = f"{CLIENT}-{sys.implementation.cache_tag}"
    folder = str(made_once("pulsar-client", version, make))
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("pulsar")


class PulsarScheduler:
    early_ms = 1_000

    def __init__(self, port: int, process: subprocess.Popen[bytes], output: Path) -> None:
        self.pid = process.pid
        self._module = client_module()
        log = self._module.FileLogger(self._module.LoggerLevel.Error, f"{output}.client")
        end = time.monotonic() + PATIENCE_S
        while True:
            self._client = self._module.Client(f"pulsar://127.0.0.1:{port}", operation_timeout_seconds=5, logger=log)
            try:
                self._producer = self._client.create_producer(TOPIC, block_if_queue_full=True)
                self._consumer = self._client.subscribe(TOPIC, "g", consumer_type=self._module.ConsumerType.Shared)
                break
            except Exception as error:  # it has no other base class
                self._client.close()
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"Pulsar did not start: {error}\n{output.read_text()[-2_000:]}") from error
                time.sleep(RETRY_S)

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        refused: list[object] = []
        left = threading.Semaphore(0)

        def answered(result: object, _id: object) -> None:
            if result != self._module.Result.Ok:
                refused.append(result)
            left.release()

        sent = 0
        for due_ms, value in messages:
            self._producer.send_async(value, answered, deliver_at=due_ms)
            sent += 1
        for _ in range(sent):
            left.acquire()
        if refused:
            raise RuntimeError(f"a message was refused: {refused[0]}")

    def arrivals(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            message = self._consumer.receive(PATIENCE_S * 1_000)
            self._consumer.acknowledge(message)
            yield message.data()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._client.shutdown()  # unlike close it does not wait for the broker, which may be gone


@contextmanager
def pulsar(data: Path) -> Iterator[PulsarScheduler]:
    port = free_port()
    settings = {**STANDALONE, "brokerServicePort": str(port), "webServicePort": str(free_port())}
    file, output = data / "standalone.conf", data / "pulsar.out"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = java_command(
        *("org.apache.pulsar.PulsarStandaloneStarter", "--config", str(file), "--no-functions-worker"),
        *("--metadata-dir", str(data / "metadata"), "--bookkeeper-dir", str(data / "bookkeeper")),
        classpath=jars.classpath(JARS),
        options=[
            *(f"-Xmx{HEAP}", f"-XX:MaxDirectMemorySize={HEAP}", "-Dio.netty.tryReflectionSetAccessible=true"),
            *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
        ],
    )
    with output.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=data)
    try:
        made = PulsarScheduler(port, process, output)
        try:
            yield made
        finally:
            made.close()
    finally:
        process.kill()
        process.wait()
