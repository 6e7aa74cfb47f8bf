"""How long one who adds and checks is held up, at worst, while very many completed operations are purged.

Operations under three of three hundred keys are completed without their lists being told, as the timer or a forced
completion does it. Then the purge starts, and beside it somebody goes on adding an operation, under a key of its own
and two of those being purged, and completing it by a check. The longest of these turns is what counts.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping

from benchmarks.loads.collector import Collector, set_collector
from ixion.purgatory import DelayedOperation, DelayedOperationPurgatory
from ixion.timer import LoopTimer

NEVER_PURGE = 10**9
PURGE_INTERVAL = 1000
TIMEOUT_MS = 600_000
SPREAD = 100  # keys of each of the three kinds


class Waiting(DelayedOperation):
    ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        pass


class Probe:
    """Adds, checks, and remembers the longest turn."""

    def __init__(self, purgatory: DelayedOperationPurgatory) -> None:
        self.purgatory = purgatory
        self.longest_ns = 0
        self.turns = 0

    def turn(self) -> None:
        before = time.perf_counter_ns()
        self.turns += 1
        operation = Waiting(TIMEOUT_MS)
        place = self.turns % SPREAD
        self.purgatory.try_complete_else_watch(operation, ["probe", f"a{place}", f"b{place}"])
        operation.ready = True
        self.purgatory.check_and_complete("probe")
        self.longest_ns = max(self.longest_ns, time.perf_counter_ns() - before)


def fill(purgatory: DelayedOperationPurgatory, operations: int) -> None:
    for number in range(operations):
        operation = Waiting(TIMEOUT_MS)
        place = number % SPREAD
        purgatory.try_complete_else_watch(operation, [f"a{place}", f"b{place}", f"c{place}"])
        operation.force_complete()


def in_threads(operations: int, collector: Collector = "relaxed") -> Mapping[str, float]:
    purgatory = DelayedOperationPurgatory("bench", reaper=False, purge_interval=PURGE_INTERVAL)
    set_collector(collector)
    fill(purgatory, operations)
    purger = threading.Thread(target=purgatory.advance_clock, args=(0,))
    probe = Probe(purgatory)
    start = time.perf_counter_ns()
    purger.start()
    while purger.is_alive():
        probe.turn()
    return _answer(purgatory, probe, time.perf_counter_ns() - start)


def on_loop(operations: int, collector: Collector = "relaxed") -> Mapping[str, float]:
    return asyncio.run(_on_loop(operations, collector))


async def _on_loop(operations: int, collector: Collector) -> Mapping[str, float]:
    """The turn includes the wait for the loop: whatever else the loop does holds everybody up."""
    timer = LoopTimer("bench")
    purgatory = DelayedOperationPurgatory("bench", timer=timer, purge_interval=NEVER_PURGE)
    set_collector(collector)
    fill(purgatory, operations)
    purgatory.purge_interval = PURGE_INTERVAL
    probe = Probe(purgatory)
    start = before = time.perf_counter_ns()
    longest = 0
    while purgatory.watched > 2 * SPREAD + PURGE_INTERVAL * 3:
        probe.turn()
        await asyncio.sleep(0)
        longest = max(longest, (now := time.perf_counter_ns()) - before)
        before = now
    probe.longest_ns = longest
    answer = _answer(purgatory, probe, time.perf_counter_ns() - start)
    timer.shutdown()
    return answer


def _answer(purgatory: DelayedOperationPurgatory, probe: Probe, took_ns: int) -> Mapping[str, float]:
    purgatory.shutdown()
    return {"longest": probe.longest_ns / 1e6, "total": took_ns / 1e6}
