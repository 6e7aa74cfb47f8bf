"""Delayed messages as teams build them by hand: a sorted set of Redis by due time, and a poller that moves what is due.

The poller looks every `POLL_S` and moves up to a thousand due members to a list, by a script, so that none is lost
between the two; a worker waits for the list (BLMPOP). The appendonly file is written before the acknowledgement and
never synced (appendfsync=no), as with ixion; the default is once a second.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.loads.schedulers.scheduler import PATIENCE_S
from devtools.kafka import free_port
from devtools.programs import tool

POLL_S = 0.01
AT_ONCE = 1_000
TAKEN = 100  # messages that the worker takes at a time, at most
MOVE = b"""
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1000)
for _, each in ipairs(due) do redis.call('RPUSH', KEYS[2], each) end
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
return #due
"""


class Redis:
    """As much of the protocol as is needed."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._file = self._socket.makefile("rb")

    def send(self, *commands: tuple[bytes, ...]) -> None:
        made = []
        for command in commands:
            made.append(b"*%d\r\n" % len(command))
            made += [b"$%d\r\n%b\r\n" % (len(word), word) for word in command]
        self._socket.sendall(b"".join(made))

    def receive(self) -> Any:
        line = self._file.readline().rstrip()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.receive() for _ in range(int(rest))]
        return rest

    def call(self, *words: bytes) -> Any:
        self.send(words)
        return self.receive()

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Poller:
    """Moves what is due, until it is stopped."""

    def __init__(self, port: int) -> None:
        self._redis = Redis(port)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            now_ms = time.time_ns() // 1_000_000
            if self._redis.call(b"EVAL", MOVE, b"2", b"later", b"ready", b"%d" % now_ms) < 1000:
                time.sleep(POLL_S)

    def stop(self) -> None:
        if not self._ends.is_set():
            self._ends.set()
            self._thread.join()
            self._redis.close()


class RedisScheduler:
    early_ms = 0

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self.pid = pid
        self._redis = Redis(port)
        self._poller = Poller(port)

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        commands = [(b"ZADD", b"later", b"%d" % due_ms, value) for due_ms, value in messages]
        for start in range(0, len(commands), AT_ONCE):
            some = commands[start : start + AT_ONCE]
            self._redis.send(*some)
            for _ in some:
                self._redis.receive()

    def arrivals(self, count: int) -> Iterator[bytes]:
        worker = Redis(self._port)
        while count:
            most = min(count, TAKEN)
            found = worker.call(b"BLMPOP", b"%d" % PATIENCE_S, b"1", b"ready", b"LEFT", b"COUNT", b"%d" % most)[1]
            count -= len(found)
            yield from found
        worker.close()

    def kill(self) -> None:
        self._poller.stop()
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._poller.stop()
        self._redis.close()


@contextmanager
def redis(data: Path) -> Iterator[RedisScheduler]:
    port = free_port()
    options = [
        "--port",
        str(port),
        "--dir",
        str(data),
        "--appendonly",
        "yes",
        "--appendfsync",
        "no",
        "--save",
        "",
        "--bind",
        "127.0.0.1",
    ]
    process = subprocess.Popen([tool("redis-server"), *options], stdout=subprocess.DEVNULL)
    try:
        wait_ready(port)
        made = RedisScheduler(port, process.pid)
        try:
            yield made
        finally:
            made.close()
    finally:
        process.kill()
        process.wait()


def wait_ready(port: int) -> None:
    """Until it has loaded its file."""
    while True:
        try:
            client = Redis(port)
        except OSError:
            time.sleep(0.01)
            continue
        try:
            if client.call(b"PING") == b"PONG":
                return
        except RuntimeError:
            time.sleep(0.01)
        finally:
            client.close()
