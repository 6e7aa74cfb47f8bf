"""What is measured of a timer. Each function runs in an interpreter of its own and answers {row key: value}."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from benchmarks.framework.process import resident_bytes
from benchmarks.loads.collector import Collector, GcWatch, set_collector
from benchmarks.loads.delays import delays
from benchmarks.loads.timers import MS, Competitor, Idle, Ixion

Numbers = Mapping[str, float]
Load = Callable[..., Coroutine[Any, Any, Numbers]]
CHUNK = 5_000  # operations between two turns of the event loop
AGAIN = 1_000  # tasks that are moved round and round


def measure(
    load: Load,
    make: Callable[[], Competitor],
    *sizes: int,
    collector: Collector = "relaxed",
) -> Numbers:
    async def run() -> Numbers:
        competitor = make()
        set_collector(collector)
        try:
            return await load(competitor, *sizes)
        finally:
            competitor.close()

    return asyncio.run(run())


async def pending(competitor: Competitor, tasks: int, operations: int) -> Numbers:
    """Add and cancel, and add again, while so many other tasks wait far ahead.

    Timed in processor time, which a busy neighbour does not lengthen: filling in that of the process, because the JVM
    collects garbage in threads of its own, the rest in that of this thread.
    """
    far = delays(tasks, 60_000, 3_600_000)
    near = delays(operations, 1_000, 30_000)
    chunks = [near[start : start + CHUNK] for start in range(0, operations, CHUNK)]
    before = resident_bytes()
    watch = GcWatch()
    start = time.process_time_ns()
    competitor.fill(far)
    fill_ns = (time.process_time_ns() - start) / tasks
    watch.close()
    used = resident_bytes() - before

    await asyncio.sleep(0)
    start = time.thread_time_ns()
    for chunk in chunks:
        competitor.add_and_cancel(chunk)
        await asyncio.sleep(0)
    fresh_ns = (time.thread_time_ns() - start) / operations

    made_ns = 0
    if isinstance(competitor, Ixion):
        for chunk in chunks:
            made = [Idle(delay) for delay in chunk]
            start = time.thread_time_ns()
            competitor.add_and_cancel_made(made)
            made_ns += time.thread_time_ns() - start
            await asyncio.sleep(0)

    competitor.prepare_again(near[:AGAIN])
    start = time.thread_time_ns()
    for number in range(operations // AGAIN):
        competitor.add_again()
        if number % (CHUNK // AGAIN) == 0:
            await asyncio.sleep(0)
    again_ns = (time.thread_time_ns() - start) / operations
    return {
        "fill": fill_ns,
        "bytes": used / tasks,
        "fresh": fresh_ns,
        "made": made_ns / operations,
        "again": again_ns,
        "gc-longest": watch.longest_ns / MS,
        "gc-total": watch.total_ns / MS,
    }


async def fill(competitor: Competitor, tasks: int) -> Numbers:
    far = delays(tasks, 60_000, 3_600_000)
    start = time.process_time_ns()
    competitor.fill(far)
    return {"fill": (time.process_time_ns() - start) / tasks}


async def burst(competitor: Competitor, tasks: int, span_ms: int) -> Numbers:
    """So many tasks spread over so many milliseconds: from the first add until the last has run."""
    spread = delays(tasks, 0, span_ms)
    chunks = [spread[start : start + CHUNK] for start in range(0, tasks, CHUNK)]
    start, cpu = time.perf_counter_ns(), time.process_time_ns()
    for chunk in chunks:
        competitor.count(chunk)
        await asyncio.sleep(0)
    while len(competitor.ran) < tasks:
        await asyncio.sleep(0.001)
    return {"burst": (time.perf_counter_ns() - start) / MS, "burst-cpu": (time.process_time_ns() - cpu) / MS}


async def lateness(competitor: Competitor, rate: int, span_ms: int) -> Numbers:
    """Tasks of 10 to 500 ms added at a steady rate: how long after its time each one ran."""
    per_ms = rate // 1000
    tasks = per_ms * span_ms
    spread = delays(tasks, 10, 500)
    ticks = [spread[start : start + per_ms] for start in range(0, tasks, per_ms)]
    start = time.monotonic_ns()
    for number, tick in enumerate(ticks):
        while (ahead := start + number * MS - time.monotonic_ns()) > 0:
            await asyncio.sleep(ahead / 1e9)
        competitor.note(tick)
    while len(competitor.ran) < tasks:
        await asyncio.sleep(0.01)
    late = sorted(competitor.ran)
    return {"late-p50": late[tasks // 2] / MS, "late-p99": late[int(tasks * 0.99)] / MS}
