"""The load of Kafka's TestPurgatoryPerformance, for ours.

Requests arrive at exponential intervals, whole milliseconds with the rest carried over, so that the mean rate is exact.
Each would be answered after a log-normal latency; one whose latency is beyond the timeout is left to the timer. Every
request carries 100 bytes and watches the same three keys, drawn once: the longest possible watch lists. A generator
puts requests into the purgatory; a completer forces each one complete when its latency is over; the purgatory's own
reaper turns the clock and purges. What comes out is the rate at which the generator really got its requests in, and
the processor time of the whole process per request.

In the thread form generator, completer, reaper and the timer's worker are threads, as in the original. In the loop form
they all live on one event loop, as in the broker.

The harness is made cheap where the original's is not ours to judge: arrivals and latencies are drawn beforehand, and
the completer's delay queue is a ring of one list per millisecond. With `null` it runs without any purgatory, to show
what it costs itself.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.loads.collector import Collector, GcWatch, set_collector
from ixion.purgatory import DelayedOperation, DelayedOperationPurgatory
from ixion.timer import LoopTimer

REQUEST_BYTES = 100
KEYS, KEY_SPACE = 3, 100
RING_MS = 4096  # a power of two; the completer must not fall behind by more than this
LATE_SLOTS = 3  # slots looked at again, for what was put into the present millisecond after it was emptied
TURN = 200  # requests between two turns of the event loop
NORMAL_P75 = 0.674490  # of the standard normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    requests: int
    rate: float  # a second
    timeout_ms: int
    p50_ms: float
    p75_ms: float


class Request(Protocol):
    def force_complete(self) -> bool: ...


def request_class(done: list[int]) -> type[DelayedOperation]:
    append = done.append

    class FakeRequest(DelayedOperation):
        def __init__(self, delay_ms: int) -> None:
            super().__init__(delay_ms)
            self.data = bytes(REQUEST_BYTES)

        def try_complete(self) -> bool:
            return False

        def on_complete(self) -> None:
            append(0)

    return FakeRequest


def null_request_class(done: list[int]) -> type[Request]:
    """A request that only the harness knows."""
    append = done.append

    class NullRequest:
        def __init__(self, delay_ms: int) -> None:
            self.delay_ms = delay_ms
            self.data = bytes(REQUEST_BYTES)

        def force_complete(self) -> bool:
            append(0)
            return True

    return NullRequest


def _watch_nothing(request: Request, keys: list[str]) -> bool:  # noqa: ARG001 - stands for the purgatory's method
    return False


class Harness:
    def __init__(self, load: Load, *, null: bool) -> None:
        self.load = load
        self.null = null
        rng = random.Random()
        self.keys = [f"fakeKey{rng.randrange(KEY_SPACE)}" for _ in range(KEYS)]
        self.arrivals = _arrivals(load, rng)  # ms since the start
        self.latencies = _latencies(load, rng)
        if null:  # nobody else will end the slow ones
            self.latencies = array("q", [min(latency, load.timeout_ms - 1) for latency in self.latencies])
        self.ring: list[list[Request]] = [[] for _ in range(RING_MS)]
        self.done: list[int] = []
        self.position = 0  # the completer has emptied all slots before this one

    def measure(self, run: Callable[[Harness], float]) -> Mapping[str, float]:
        """RUN puts all requests in, waits until they are done, and says how long the putting in took, in seconds."""
        watch = GcWatch()
        cpu, start = time.process_time(), time.perf_counter()
        took = run(self)
        cpu, elapsed = time.process_time() - cpu, time.perf_counter() - start
        watch.close()
        requests = self.load.requests
        return {
            "elapsed": elapsed * 1000,
            "target": requests * 1000 / max(1, self.arrivals[-1]),
            "actual": requests / took,
            "cpu": cpu / requests * 1e6,
            "gc-runs": watch.runs,
            "gc": watch.total_ns / requests,
        }

    def subject(self, purgatory: DelayedOperationPurgatory | None) -> tuple[Callable[[int], Any], Callable[..., bool]]:
        """How a request is made, and where it is put."""
        if purgatory is None:
            return null_request_class(self.done), _watch_nothing
        return request_class(self.done), purgatory.try_complete_else_watch

    def complete_until(self, now_ms: int) -> None:
        """The completer's work: force complete what is due by now."""
        ring = self.ring
        for slot in range(max(0, self.position - LATE_SLOTS), now_ms + 1):
            due = ring[slot % RING_MS]
            while due:
                due.pop().force_complete()
        if now_ms - self.position > RING_MS // 2:
            raise RuntimeError("the completer fell behind by more than its ring holds")
        self.position = now_ms + 1


def in_threads(harness: Harness) -> float:
    load, keys, done = harness.load, harness.keys, harness.done
    purgatory = None if harness.null else DelayedOperationPurgatory("bench")
    make, watch = harness.subject(purgatory)
    start = time.monotonic_ns()
    stopped = threading.Event()
    finish = 0.0

    def generate() -> None:
        nonlocal finish
        clock, ring, timeout = time.monotonic_ns, harness.ring, load.timeout_ms
        for arrival, latency in zip(harness.arrivals, harness.latencies, strict=True):
            now = (clock() - start) // 1_000_000
            if arrival > now:
                time.sleep((arrival - now) / 1000)
                now = (clock() - start) // 1_000_000
            request = make(timeout)
            if latency < timeout:
                ring[(now + latency) % RING_MS].append(request)
            watch(request, keys)
        finish = (clock() - start) / 1e9

    def complete() -> None:
        while not stopped.is_set():
            harness.complete_until((time.monotonic_ns() - start) // 1_000_000)
            time.sleep(0.001)

    completer = threading.Thread(target=complete)
    generator = threading.Thread(target=generate)
    completer.start()
    generator.start()
    generator.join()
    while len(done) < load.requests:
        time.sleep(0.005)
    stopped.set()
    completer.join()
    if purgatory is not None:
        purgatory.shutdown()
    return finish


def on_loop(harness: Harness) -> float:
    return asyncio.run(_on_loop(harness))


async def _on_loop(harness: Harness) -> float:
    load, keys, done = harness.load, harness.keys, harness.done
    timer = LoopTimer("bench")
    purgatory = None if harness.null else DelayedOperationPurgatory("bench", timer=timer)
    make, watch = harness.subject(purgatory)
    clock, ring, timeout = time.monotonic_ns, harness.ring, load.timeout_ms
    start = clock()

    async def complete() -> None:
        while True:
            harness.complete_until((clock() - start) // 1_000_000)
            await asyncio.sleep(0.001)

    completer = asyncio.create_task(complete())
    left = TURN
    for arrival, latency in zip(harness.arrivals, harness.latencies, strict=True):
        now = (clock() - start) // 1_000_000
        left -= 1
        if arrival > now or not left:
            await asyncio.sleep(max(0, arrival - now) / 1000)
            now = (clock() - start) // 1_000_000
            left = TURN
        request = make(timeout)
        if latency < timeout:
            ring[(now + latency) % RING_MS].append(request)
        watch(request, keys)
    finish = (clock() - start) / 1e9
    while len(done) < load.requests:
        await asyncio.sleep(0.005)
    completer.cancel()
    if purgatory is not None:
        purgatory.shutdown()
    timer.shutdown()
    return finish


def _arrivals(load: Load, rng: random.Random) -> array[int]:
    arrivals = array("q")
    exact = 0.0
    for _ in range(load.requests):
        exact += rng.expovariate(load.rate / 1000)
        arrivals.append(int(exact))
    return arrivals


def _latencies(load: Load, rng: random.Random) -> array[int]:
    mu = math.log(load.p50_ms)
    sigma = (math.log(load.p75_ms) - mu) / NORMAL_P75
    return array("q", [int(rng.lognormvariate(mu, sigma)) for _ in range(load.requests)])


def measure(
    form: Callable[[Harness], float], load: Load, *, collector: Collector = "relaxed", null: bool = False
) -> Mapping[str, float]:
    harness = Harness(load, null=null)
    set_collector(collector)
    return harness.measure(form)
