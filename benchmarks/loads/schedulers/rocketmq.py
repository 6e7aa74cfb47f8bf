"""Timer messages of RocketMQ 5 (setDeliverTimeMs), through its Java client (`java/RocketClient.java`).

Its timing wheel has the default tick of a second (timerPrecisionMs): a message comes at the next full second, or later.
What waits is in the commit log, which is mapped into memory, and in a log of the wheel. Neither is synced before the
acknowledgement (flushDiskType=ASYNC_FLUSH, the default).

The name server, which only knows the address of the broker, runs on when the broker is killed. The broker's port for
replicas listens on all addresses, and has no setting for that; all others are on the loopback address.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.framework.java import SOURCES
from benchmarks.loads.schedulers.scheduler import PATIENCE_S, Scheduler, Start
from devtools import jars
from devtools.jvm import compile_java, java_command
from devtools.kafka import free_port

JARS = "rocketmq-5.5.0"
HEAP, CLIENT_HEAP, NAMES_HEAP = "1g", "512m", "128m"


class RocketScheduler:
    early_ms = 1_000  # a tick; the wheel rounds up, so nothing should be early

    def __init__(self, names: str, home: Path, pid: int) -> None:
        self.pid = pid
        libraries = jars.classpath(JARS)
        classes = compile_java(SOURCES / "RocketClient.java", libraries)
        reader, writer = os.pipe()
        command = java_command(
            *("RocketClient", names, f"/proc/self/fd/{writer}"),
            classpath=f"{classes}:{libraries}",
            options=[f"-Xmx{CLIENT_HEAP}", f"-Duser.home={home}"],  # where it writes its log
        )
        self._errors = home / "client.err"
        with self._errors.open("wb") as errors:
            self._client = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, pass_fds=[writer]
            )
        os.close(writer)
        self._arrivals = os.fdopen(reader, "rb")

    def wait_ready(self) -> None:
        """Until a first message has passed. To be called when the broker has started: the client tries for ever."""
        self._answered()

    def _answered(self) -> None:
        assert self._client.stdout is not None
        ready, _, _ = select.select([self._client.stdout], [], [], PATIENCE_S)
        if not ready or self._client.stdout.read(1) != b".":
            raise RuntimeError(f"the client of RocketMQ does not answer:\n{self._errors.read_text()[-2_000:]}")

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        assert self._client.stdin is not None
        made = [struct.pack(">qi", due_ms, len(value)) + value for due_ms, value in messages]
        self._client.stdin.write(b"".join(made) + bytes(8))
        self._client.stdin.flush()
        self._answered()

    def arrivals(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            (size,) = struct.unpack(">i", self._arrivals.read(4))
            yield self._arrivals.read(size)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._client.kill()
        self._client.wait()
        for pipe in (self._client.stdin, self._client.stdout, self._arrivals):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:  # bytes that the client did not take
                pass


@contextmanager
def name_server() -> Iterator[str]:
    """Its address."""
    port = free_port()
    with (
        TemporaryDirectory(prefix="rocketmq-") as folder,
        running("org.apache.rocketmq.namesrv.NamesrvStartup", Path(folder), NAMES_HEAP, {"listenPort": str(port)}) as (
            process,
            output,
        ),
    ):
        wait_for("boot success", process, output)
        yield f"127.0.0.1:{port}"


def on_rocketmq(names: str) -> Start:
    @contextmanager
    def start(data: Path) -> Iterator[Scheduler]:
        settings = {
            "namesrvAddr": names,
            "brokerIP1": "127.0.0.1",
            "listenPort": str(free_port()),
            "haListenPort": str(free_port()),
            "storePathRootDir": str(data / "store"),
            "waitTimeMillsInSendQueue": str(PATIENCE_S * 1_000),  # by default it refuses what it cannot store in 0.2 s
        }
        with running("org.apache.rocketmq.broker.BrokerStartup", data, HEAP, settings) as (process, output):
            made = RocketScheduler(names, data, process.pid)  # its client starts while the broker does
            try:
                wait_for("boot success", process, output)
                made.wait_ready()
                yield made
            finally:
                made.close()

    return start


@contextmanager
def running(
    main: str, home: Path, heap: str, settings: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The process, and the file with its output."""
    file, output = home / f"{main}.properties", home / f"{main}.out"
    file.write_text("".join(f"{name}={value}\n" for name, value in {"bindAddress": "127.0.0.1", **settings}.items()))
    command = java_command(
        *(main, "-c", str(file)),
        classpath=jars.classpath(JARS),
        options=[
            f"-Xmx{heap}",
            f"-XX:MaxDirectMemorySize={heap}",
            f"-Duser.home={home}",
            f"-Drocketmq.home.dir={home}",
        ],
    )
    with output.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield process, output
    finally:
        process.kill()
        process.wait()


def wait_for(words: str, process: subprocess.Popen[bytes], output: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while words not in output.read_text():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"RocketMQ did not start:\n{output.read_text()[-2_000:]}")
        time.sleep(0.05)
