"""How many instructions of the interpreter a broker needs for a produce and for a fetch of an ordinary topic.

    PYTHONPATH=src:. python -m benchmarks.loads.off_instructions        prints two numbers

Counted, not timed: the same on a busy machine. One record of 100 bytes a request, one request at a time, which is where
a small cost shows most. Only packages that a request goes through by itself count (`COUNTED`): how often sockets and
timers are looked at depends on the machine. Each function counts with its smallest number of several windows.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
WINDOWS, REQUESTS = 5, 20
WARM = 120  # the first hundred batches of a partition are looked through for headers about delivery
PRODUCE, FETCH = 9, 12  # versions
COUNTED = ("broker/apis/", "broker/log/", "broker/replica/", "language/protocol/", "language/records/", "purgatory/")


class Instructions:
    """Of the threads that start from now on, while `on`."""

    def __init__(self) -> None:
        self.counts: Counter[CodeType] = Counter()
        self.on = False
        threading.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not self.on or not is_counted(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            self.counts[frame.f_code] += 1
        return self._trace


def is_counted(file: str) -> bool:
    _, found, part = file.rpartition("/ixion/")
    return bool(found) and part.startswith(COUNTED)


def exchange(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(frame)
    size = int.from_bytes(receive(connection, 4), "big")
    receive(connection, size)


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        some = connection.recv(size - len(data))
        if not some:
            raise RuntimeError("the broker has closed the connection")
        data += some
    return data


def main() -> None:
    from benchmarks.loads.prepared import check_answer, fetch_request, framed, produce_request
    from ixion.language.protocol.registry import ApiKey
    from ixion.testing import Broker

    instructions = Instructions()
    with Broker() as broker:
        threading.settrace(None)
        broker.create_topic("plain")
        port = int(broker.bootstrap.rsplit(":", 1)[1])
        bodies = {
            (ApiKey.PRODUCE, PRODUCE): produce_request("plain", 1, 100),
            (ApiKey.FETCH, FETCH): fetch_request("plain", 100),
        }
        found: list[float] = []
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            for (key, version), body in bodies.items():
                check_answer(port, key, version, body)
                frame = framed(key, version, body)
                for _ in range(WARM):
                    exchange(connection, frame)
                windows: list[Counter[CodeType]] = []
                for _ in range(WINDOWS):
                    instructions.counts, instructions.on = Counter(), True
                    for _ in range(REQUESTS):
                        exchange(connection, frame)
                    instructions.on = False
                    exchange(connection, frame)  # what is being traced is over now
                    windows.append(instructions.counts)
                smallest = [min(window[code] for window in windows) for code in windows[0]]
                found.append(sum(smallest) / REQUESTS)
    print(*found)


def count_instructions(tree: Path) -> tuple[float, float]:
    """For a produce, and for a fetch, by the sources in a folder, interpreted."""
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{CHECKOUT}"}
    environment.pop("COVERAGE_PROCESS_START", None)
    words = [sys.executable, "-m", "benchmarks.loads.off_instructions"]
    done = subprocess.run(
        words, env=environment, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    produce, fetch = map(float, done.stdout.split())
    return produce, fetch


if __name__ == "__main__":
    main()
