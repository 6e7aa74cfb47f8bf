"""How long a thread that adds and checks is held up, at worst, while very many completed operations are purged.

Operations under three of three hundred keys are completed without their lists being told, as the timer or a forced
completion does it. Then the purge starts, and another thread goes on adding an operation, under a key of its own
and two of those being purged, and completing it by a check. The longest of these turns is what counts. How long it
gets without any purge, because the machine has other things to do, is measured first.

On a busy machine the longest turn says more about the neighbours: a thread that is put to sleep while it holds the
interpreter holds up all others. So the processor time that this process itself used during a turn is kept as well.
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
CALM_TURNS = 50_000  # without a purge


class Waiting(DelayedOperation):
    ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        pass


class Probe:
    """Adds, checks, and remembers the longest turn: by the clock, and in processor time of the whole process."""

    def __init__(self, purgatory: DelayedOperationPurgatory) -> None:
        self.purgatory = purgatory
        self.longest_ns = 0
        self.longest_cpu_ns = 0
        self.turns = 0
        self.start()

    def start(self) -> None:
        self._before = time.perf_counter_ns()
        self._cpu_before = time.process_time_ns()

    def turn(self) -> None:
        self.turns += 1
        operation = Waiting(TIMEOUT_MS)
        place = self.turns % SPREAD
        self.purgatory.try_complete_else_watch(operation, ["probe", f"a{place}", f"b{place}"])
        operation.ready = True
        self.purgatory.check_and_complete("probe")

    def end(self) -> None:
        """The end of a turn is the start of the next."""
        before, cpu_before = self._before, self._cpu_before
        self.start()
        self.longest_ns = max(self.longest_ns, self._before - before)
        self.longest_cpu_ns = max(self.longest_cpu_ns, self._cpu_before - cpu_before)


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
    calm = Probe(purgatory)
    for _ in range(CALM_TURNS):
        calm.turn()
        calm.end()
    purger = threading.Thread(target=purgatory.advance_clock, args=(0,))
    purger.start()
    probe = Probe(purgatory)
    while purger.is_alive():
        probe.turn()
        probe.end()
    purgatory.shutdown()
    return _answer(probe, calm)


def on_loop(operations: int, collector: Collector = "relaxed") -> Mapping[str, float]:
    return asyncio.run(_on_loop(operations, collector))


async def _on_loop(operations: int, collector: Collector) -> Mapping[str, float]:
    """The turn includes the wait for the loop: whatever else the loop does holds everybody up."""
    timer = LoopTimer("bench")
    purgatory = DelayedOperationPurgatory("bench", timer=timer, purge_interval=NEVER_PURGE)
    set_collector(collector)
    fill(purgatory, operations)
    calm = Probe(purgatory)
    for _ in range(CALM_TURNS):
        calm.turn()
        await asyncio.sleep(0)
        calm.end()
    purgatory.purge_interval = PURGE_INTERVAL
    probe = Probe(purgatory)
    while purgatory.watched > 2 * SPREAD + PURGE_INTERVAL * 3:
        probe.turn()
        await asyncio.sleep(0)
        probe.end()
    purgatory.shutdown()
    timer.shutdown()
    return _answer(probe, calm)


def _answer(probe: Probe, calm: Probe) -> Mapping[str, float]:
    return {"longest": probe.longest_ns / 1e6, "own": probe.longest_cpu_ns / 1e6, "calm": calm.longest_ns / 1e6}
