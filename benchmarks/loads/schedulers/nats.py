"""Schedules of NATS JetStream 2.12 (ADR-51): a message with the header Nats-Schedule, each on a subject of its own.

When it is due the server stores the message under its target subject in the same stream; a push consumer delivers it.
The stream is in files. A message is acknowledged once it is stored.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.loads.schedulers.scheduler import PATIENCE_S
from devtools.cache import made_once
from devtools.kafka import free_port
from devtools.programs import tool

VERSION = "v2.12.1"
AT_ONCE = 500


def server_program() -> str:
    def make(folder: Path) -> None:
        subprocess.run(
            [tool("go"), "install", f"github.com/nats-io/nats-server/v2@{VERSION}"],
            env={**os.environ, "GOBIN": str(folder)},
            check=True,
            capture_output=True,
        )

    return str(made_once("nats", VERSION, make) / "nats-server")


class Nats:
    """As much of the protocol as is needed."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._file = self._socket.makefile("rb")
        self._file.readline()  # INFO
        self._number = 0
        self._socket.sendall(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n')

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def subscribe(self, subject: str, sid: int) -> None:
        self.send(b"SUB %b %d\r\n" % (subject.encode(), sid))

    def receive(self) -> bytes:
        """The payload of the next message, without headers."""
        while True:
            words = self._file.readline().split()
            if not words:
                raise ConnectionError("the server is gone")
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] in (b"MSG", b"HMSG"):
                skipped = int(words[-2]) if words[0] == b"HMSG" else 0
                return self._file.read(int(words[-1]) + 2)[skipped:-2]
            elif words[0] == b"-ERR":
                raise RuntimeError(b" ".join(words).decode())

    def request(self, subject: str, body: object) -> Any:
        self._number += 1
        inbox = f"_INBOX.request.{self._number}"
        self.subscribe(inbox, 1_000 + self._number)
        data = json.dumps(body).encode()
        self.send(b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), inbox.encode(), len(data), data))
        return json.loads(self.receive() or b"{}")

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class NatsScheduler:
    early_ms = 0

    def __init__(self, port: int, pid: int) -> None:
        self.pid = pid
        self._number = time.time_ns()  # subjects must be new after a restart
        self._sender = Nats(port)
        self._reader = Nats(port)
        stream = {
            "name": "later",
            "subjects": ["later.*", "ready"],
            "storage": "file",
            "allow_msg_schedules": True,
            "allow_msg_ttl": True,
        }
        self._ask("$JS.API.STREAM.CREATE.later", stream)
        self._reader.subscribe("delivered", 7)
        consumer = {"deliver_subject": "delivered", "deliver_policy": "new", "filter_subject": "ready"}
        self._ask(
            "$JS.API.CONSUMER.CREATE.later", {"stream_name": "later", "config": {**consumer, "ack_policy": "none"}}
        )
        self._sender.subscribe("acknowledged", 8)

    def _ask(self, subject: str, body: object) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            answer = self._sender.request(subject, body)
            if "type" in answer and "error" not in answer:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{subject}: {answer}")
            time.sleep(0.02)

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        made: list[bytes] = []
        for due_ms, value in messages:
            self._number += 1
            at = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            head = b"NATS/1.0\r\nNats-Schedule: @at %b\r\nNats-Schedule-Target: ready\r\n\r\n" % at.encode()
            subject, size = b"later.%d" % self._number, len(head) + len(value)
            made.append(b"HPUB %b acknowledged %d %d\r\n%b%b\r\n" % (subject, len(head), size, head, value))
            if len(made) == AT_ONCE:
                self._publish(made)
                made = []
        self._publish(made)

    def _publish(self, made: list[bytes]) -> None:
        self._sender.send(b"".join(made))
        for _ in made:
            answer = self._sender.receive()
            if b'"error"' in answer or not answer:
                raise RuntimeError(answer.decode())

    def arrivals(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield self._reader.receive()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._sender.close()
        self._reader.close()


@contextmanager
def nats(data: Path) -> Iterator[NatsScheduler]:
    port = free_port()
    process = subprocess.Popen(
        [server_program(), "-js", "-sd", str(data), "-a", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_ready(port)
        made = NatsScheduler(port, process.pid)
        try:
            yield made
        finally:
            made.close()
    finally:
        process.kill()
        process.wait()


def wait_ready(port: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            Nats(port).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
