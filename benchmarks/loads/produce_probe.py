"""A client that produces a record every millisecond and notes how long each takes, until its input ends.

    python -m benchmarks.loads.produce_probe PORT TOPIC       prints "milliseconds since 1970, microseconds taken"

A process of its own, without a client library: what else the benchmark does takes none of its time.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time

from benchmarks.loads.off_instructions import exchange

VERSION = 9
PAUSE_S = 0.001
Taken = tuple[
    float, float
]  # when a request was sent, in milliseconds since 1970, and how long it took, in microseconds


class Probe:
    def __init__(self, port: int, topic: str) -> None:
        words = [sys.executable, "-m", __name__, str(port), topic]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop(self) -> list[Taken]:
        written, _ = self._process.communicate(timeout=60)
        if self._process.returncode:
            raise RuntimeError("the probe has failed")
        found: list[Taken] = []
        for line in written.splitlines():
            begun_ms, taken_us = map(float, line.split())
            found.append((begun_ms, taken_us))
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def p99_us(taken: list[Taken], begin_ms: float, end_ms: float) -> float:
    """Of the requests that were sent in that time."""
    found = sorted(each for at_ms, each in taken if begin_ms <= at_ms < end_ms)
    if len(found) < 20:
        raise RuntimeError(f"{len(found)} requests are too few")
    return found[len(found) * 99 // 100]


def main() -> None:
    from benchmarks.loads.prepared import check_answer, framed, produce_request
    from ixion.language.protocol.registry import ApiKey

    port, topic = int(sys.argv[1]), sys.argv[2]
    body = produce_request(topic, 1, 100)
    check_answer(port, ApiKey.PRODUCE, VERSION, body)
    frame = framed(ApiKey.PRODUCE, VERSION, body)
    found: list[Taken] = []
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            at_ms, begun = time.time() * 1e3, time.perf_counter_ns()
            exchange(connection, frame)
            found.append((at_ms, (time.perf_counter_ns() - begun) / 1e3))
    print("\n".join(f"{at_ms:.3f} {taken_us:.1f}" for at_ms, taken_us in found))


if __name__ == "__main__":
    main()
