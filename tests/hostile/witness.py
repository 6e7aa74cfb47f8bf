"""An honest client that measures its answers while others misbehave, and the memory of the broker.

Use it in every test of attacks and crowds: the honest client must not be affected.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

HELLO = struct.pack(">ihhih", 11, 18, 0, 7, 1) + b"x"


def connect(bootstrap: str, *, shown: bool = True) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    made = socket.create_connection((host, int(port)), timeout=30)
    if shown:
        ask(made)
    return made


def ask(client: socket.socket) -> bytes:
    client.sendall(HELLO)
    answer = take(client)
    assert answer is not None
    return answer


def take(client: socket.socket) -> bytes | None:
    """The next answer; None if the connection has ended."""
    try:
        head = _exactly(client, 4)
        return None if head is None else _exactly(client, struct.unpack(">i", head)[0])
    except ConnectionError:
        return None


def _exactly(client: socket.socket, size: int) -> bytes | None:
    taken = bytearray()
    while len(taken) < size:
        piece = client.recv(min(size - len(taken), 1 << 20))
        if not piece:
            return None
        taken += piece
    return bytes(taken)


def wall_ms() -> float:
    return time.perf_counter() * 1e3


class Witness:
    """Asks again and again; `worst_ms` is the longest it ever had to wait, by a clock that may count something else."""

    def __init__(self, bootstrap: str, clock_ms: Callable[[], float] = wall_ms) -> None:
        self._client = connect(bootstrap)
        self._clock_ms = clock_ms
        self.asked = 0
        self.worst_ms = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            begun = self._clock_ms()
            ask(self._client)
            self.worst_ms = max(self.worst_ms, self._clock_ms() - begun)
            self.asked += 1

    @property
    def alive(self) -> bool:
        """True if it is answered from now on, too."""
        before = self.asked
        deadline = time.monotonic() + 30
        while self.asked <= before + 1 and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        return self.asked > before + 1

    def close(self) -> None:
        self._stop.set()
        self._thread.join(60)
        self._client.close()


def memory_mb(pid: int, name: str = "VmRSS") -> int:
    return memory_kb(pid, name) // 1024


def memory_kb(pid: int, name: str = "VmRSS") -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise AssertionError(name)


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_ms(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")
