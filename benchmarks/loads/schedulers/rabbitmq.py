"""RabbitMQ as shipped: queues whose messages expire and are dead-lettered to the queue that the worker reads.

A message expires only at the head of its queue, so each delay needs a queue of its own (this is what teams do; the
delayed-message plugin is archived). What waits until tomorrow is in one queue, and the timed messages, whose due times
rise, in another. Messages are persistent and confirmed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.loads.schedulers.scheduler import PATIENCE_S, now_ms
from devtools.kafka import free_port
from devtools.programs import PartMissing, tool

METHOD, HEADER, BODY, END = 1, 2, 3, b"\xce"
AT_ONCE = 500
SOON_MS = 3_600_000  # what is due later waits in the other queue
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one on the PATH changes to a user of its own


def short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def table(**entries: str | int) -> bytes:
    made = b""
    for name, value in entries.items():
        made += short(name.replace("_", "-"))
        if isinstance(value, int):
            made += b"l" + struct.pack(">q", value)
        else:
            made += b"S" + struct.pack(">I", len(value)) + value.encode()
    return struct.pack(">I", len(made)) + made


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + END


def method(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    return frame(METHOD, channel, struct.pack(">HH", class_id, method_id) + arguments)


class Amqp:
    """As much of AMQP 0-9-1 as is needed: one connection, channel 1."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._file = self._socket.makefile("rb")
        self.send(b"AMQP\x00\x00\x09\x01")
        self.expect(10, 10)
        login = b"\x00guest\x00guest"
        self.send(method(0, 10, 11, table() + short("PLAIN") + struct.pack(">I", len(login)) + login + short("en_US")))
        self.expect(10, 30)
        self.send(method(0, 10, 31, struct.pack(">HIH", 2_047, 131_072, 0)) + method(0, 10, 40, short("/") + b"\0\0"))
        self.expect(10, 41)
        self.send(method(1, 20, 10, b"\0"))
        self.expect(20, 11)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> tuple[int, bytes]:
        head = self._file.read(7)
        if len(head) < 7:
            raise ConnectionError("the server is gone")
        kind, _, size = struct.unpack(">BHI", head)
        return kind, self._file.read(size + 1)[:-1]

    def expect(self, class_id: int, method_id: int) -> bytes:
        kind, payload = self.receive()
        found = struct.unpack_from(">HH", payload)
        if kind != METHOD or found != (class_id, method_id):
            raise RuntimeError(f"expected {class_id}.{method_id}, got {found}: {payload[4:200]!r}")
        return payload[4:]

    def declare(self, queue: str, arguments: bytes) -> None:
        self.send(method(1, 50, 10, b"\0\0" + short(queue) + b"\x02" + arguments))
        self.expect(50, 11)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class RabbitScheduler:
    early_ms = 0

    def __init__(self, port: int, pid: int) -> None:
        self.pid = pid
        self._sender = Amqp(port)
        self._reader = Amqp(port)
        self._sent = 0
        self._sender.declare("ready", table())
        dead = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "ready"}
        for queue in ("soon", "tomorrow"):
            self._sender.declare(queue, table(**dead))
        self._sender.send(method(1, 85, 10, b"\0"))
        self._sender.expect(85, 11)
        self._reader.send(method(1, 60, 20, b"\0\0" + short("ready") + short("") + b"\x02" + table()))
        self._reader.expect(60, 21)

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        made: list[bytes] = []
        for due_ms, value in messages:
            left = max(int(due_ms - now_ms()) + 1, 0)
            properties = struct.pack(">HHQHB", 60, 0, len(value), 0x1100, 2) + short(str(left))
            queue = "soon" if left < SOON_MS else "tomorrow"
            publish = method(1, 60, 40, b"\0\0" + short("") + short(queue) + b"\0")
            made.append(publish + frame(HEADER, 1, properties) + frame(BODY, 1, value))
            if len(made) == AT_ONCE:
                self._publish(made)
                made = []
        self._publish(made)

    def _publish(self, made: list[bytes]) -> None:
        self._sender.send(b"".join(made))
        self._sent += len(made)
        confirmed = 0 if made else self._sent
        while confirmed < self._sent:
            confirmed = max(confirmed, *struct.unpack_from(">Q", self._sender.expect(60, 80)))

    def arrivals(self, count: int) -> Iterator[bytes]:
        while count:
            kind, payload = self._reader.receive()
            if kind == BODY:
                count -= 1
                yield payload

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._sender.close()
        self._reader.close()


@contextmanager
def rabbitmq(data: Path) -> Iterator[RabbitScheduler]:
    tool("rabbitmq-server")
    names = shutil.which("epmd")
    if names is None or not PROGRAM.exists():
        raise PartMissing("rabbitmq-server was installed, but not epmd and its own start script")
    port, names_port = free_port(), free_port()
    settings = {
        "RABBITMQ_MNESIA_BASE": str(data / "data"),
        "RABBITMQ_LOG_BASE": str(data / "log"),
        "RABBITMQ_NODENAME": "later@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
        "ERL_EPMD_PORT": str(names_port),
        "HOME": str(data),
    }
    (data / "plugins").write_text("[].")
    # Erlang would leave this one running.
    naming = subprocess.Popen([names, "-port", str(names_port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process = subprocess.Popen(
        [str(PROGRAM)],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_ready(port)
        made = RabbitScheduler(port, beam_of(process.pid))
        try:
            yield made
        finally:
            made.close()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        naming.kill()
        naming.wait()


def beam_of(leader: int) -> int:
    """The virtual machine among the processes of a session."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found = (folder / "stat").read_text()
            except OSError:
                continue
            if "(beam" in found and int(found.rpartition(")")[2].split()[3]) == leader:
                return int(folder.name)
    raise RuntimeError("RabbitMQ has no process")


def wait_ready(port: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            Amqp(port).close()
            return
        except (OSError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
