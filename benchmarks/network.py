"""What the stages of the network cost: round trips through them beside those of a bare asyncio Protocol.

Both servers run on uvloop in processes of their own, cut the same frames and give the same answers; the client is the
same. The floor has no limits, no queue, no order to keep and no counters, but it runs interpreted, as such protocols
do, while the stages are compiled. One connection that waits for each answer,
and sixteen that do; then 2,000 that do nothing. The rows of processor time are those that a busy machine blurs least.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvloop

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads.network_servers import serve

OURS, BARE = "ixion", "bare Protocol"
KINDS = {OURS: "stages", BARE: "bare"}
PAYLOAD = bytes(100)
IDLE = 2000
BODY = struct.pack(">hhih", 18, 0, 7, 2) + b"me" + PAYLOAD
REQUEST = struct.pack(">i", len(BODY)) + BODY
ANSWER_SIZE = 8 + len(PAYLOAD)

Ask = Callable[[], tuple[float, int]]  # processor time of the server in seconds, its memory in bytes


@contextmanager
def server(kind: str) -> Iterator[tuple[int, Ask]]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(kind, there))
    process.start()
    there.close()

    def ask() -> tuple[float, int]:
        here.send(None)
        return cast(tuple[float, int], here.recv())

    try:
        yield here.recv(), ask
    finally:
        here.close()
        process.join()


class Asker(asyncio.Protocol):
    """Sends the next request when the answer to the one before is there."""

    done = 0
    missing = ANSWER_SIZE

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.missing -= len(data)
        if self.missing == 0:
            self.missing = ANSWER_SIZE
            self.done += 1
            self.transport.write(REQUEST)


async def round_trips(port: int, connections: int, seconds: float) -> tuple[int, float]:
    loop = asyncio.get_running_loop()
    askers = [(await loop.create_connection(Asker, "127.0.0.1", port))[1] for _ in range(connections)]
    started = time.perf_counter()
    for asker in askers:
        asker.transport.write(REQUEST)
    await asyncio.sleep(seconds)
    elapsed = time.perf_counter() - started
    for asker in askers:
        asker.transport.abort()
    return sum(asker.done for asker in askers), elapsed


def measure(kind: str, seconds: float) -> dict[str, float]:
    rows: dict[str, float] = {}
    with server(kind) as (port, ask):
        uvloop.run(round_trips(port, 1, seconds / 5))  # warm
        for connections in (1, 16):
            before, _ = ask()
            count, elapsed = uvloop.run(round_trips(port, connections, seconds))
            after, _ = ask()
            rows[f"rate-{connections}"] = count / elapsed
            rows[f"cpu-{connections}"] = (after - before) / count * 1e6
    with server(kind) as (port, ask):
        _, before_bytes = ask()
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(IDLE)]
        time.sleep(0.5)
        _, after_bytes = ask()
        rows["idle"] = (after_bytes - before_bytes) / IDLE
        for each in idle:
            each.close()
    return rows


def run(kind: str, seconds: float) -> Mapping[str, float]:
    return fresh(measure, kind, seconds)


def contenders(session: Session) -> Mapping[str, Contender]:
    seconds = 0.5 if session.quick else 2.0
    return {name: partial(run, kind, seconds) for name, kind in KINDS.items()}


ROWS = tuple(
    row
    for count, words in ((1, "1 connection"), (16, "16 connections"))
    for row in (
        Row(key=f"rate-{count}", label=f"round trips, {words}", unit="1/s"),
        Row(key=f"cpu-{count}", label=f"server's processor time per request, {words}", unit="µs"),
    )
)

BENCHMARK = Benchmark(
    name="network",
    title="Requests through the network's stages, beside a bare Protocol",
    rows=(*ROWS, Row(key="idle", label=f"memory per idle connection, of {IDLE:,}", unit="B", charted=False)),
    goals=(
        Goal(label="the stages add little, 1 connection", value=("cpu-1", OURS), base=("cpu-1", BARE), at_most=1.3),
        Goal(label="the stages add little, 16 connections", value=("cpu-16", OURS), base=("cpu-16", BARE), at_most=1.5),
        Goal(label="an idle connection is cheap", value=("idle", OURS), base=8192.0, at_most=1.0),
    ),
    baseline=BARE,
    contenders=contenders,
)
