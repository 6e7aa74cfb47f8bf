"""Ten thousand TLS handshakes that never end. Part of `python -m tests.crowd.soak`.

A third of the clients says nothing, a third sends half of a greeting, a third a whole one. Then those with half of a
greeting send the rest, all at once, and none of them goes on. The clients are other processes, so that the files of the
broker are its own.
"""

from __future__ import annotations

import multiprocessing
import socket
import ssl
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from ixion.clients import Admin
from tests.broker.served import Served
from tests.crowd.crowd import allow_many_files
from tests.crowd.soak_ids import bounded
from tests.security.certificates import Authority

PROCESSES = 2
DONE = "done"


def hello() -> bytes:
    """The first message of a client."""
    context = ssl.create_default_context()
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="x")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("a handshake without an answer")


def open_half(port: int, count: int, parent: Connection) -> None:
    """In a process of its own: `count` connections, one after the other; goes on whenever the parent says so."""
    allow_many_files()
    first = hello()
    said = (b"", first[: len(first) // 2], first)
    clients = []
    for number in range(count):
        client = socket.create_connection(("127.0.0.1", port), timeout=60)
        client.sendall(said[number % len(said)])
        clients.append(client)
    parent.send(DONE)
    parent.recv()
    for client in clients[1 :: len(said)]:
        with suppress(ConnectionError):  # the broker waits for ten seconds only
            client.sendall(first[len(first) // 2 :])
    parent.send(DONE)
    parent.recv()


class HalfOpen:
    """Processes with half-open handshakes."""

    def __init__(self, port: int, count: int) -> None:
        self._children: list[tuple[SpawnProcess, Connection]] = []
        context = multiprocessing.get_context("spawn")
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            child = context.Process(target=open_half, args=(port, count // PROCESSES, theirs), daemon=True)
            child.start()
            self._children.append((child, ours))

    def wait(self) -> None:
        for _, pipe in self._children:
            assert pipe.poll(300), "the connections are not accepted"
            assert pipe.recv() == DONE

    def go_on(self) -> None:
        for _, pipe in self._children:
            pipe.send(DONE)

    def close(self) -> None:
        self.go_on()
        for child, _ in self._children:
            child.join(60)


def soak(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        settings = (
            "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
            f"ssl.keystore.location={authority.sign('broker', '/CN=broker')}",
        )
        words = [word for setting in settings for word in ("--set", setting)]
        with Served(Path(folder), *words) as served:
            address = served.addresses[1]
            begun = time.perf_counter()
            with bounded(served, f"{count} half-open handshakes", keeps_mb=600, works_s=60, waits_ms=500):
                crowd = HalfOpen(int(address.rpartition(":")[2]), count)
                crowd.wait()
            files = len(list(Path(f"/proc/{served.process.pid}/fd").iterdir()))
            print(f"made in {time.perf_counter() - begun:.1f} s; the broker has {files} files open")
            with bounded(served, "a third goes on at once", keeps_mb=300, works_s=20, waits_ms=500):
                crowd.go_on()
                crowd.wait()
            with bounded(served, "and a client between them", keeps_mb=100, works_s=10, waits_ms=500):
                trusted = str(authority.certificate)
                with Admin(address, security_protocol="SSL", ssl_truststore_location=trusted) as admin:
                    assert admin.describe_cluster().cluster_id
            with bounded(served, "all are closed", keeps_mb=20, works_s=60, waits_ms=500):
                crowd.close()
            served.stop_without_stalls()
