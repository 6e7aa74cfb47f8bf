"""What a command costs: elapsed time, and processor time, which other processes on the machine hardly change."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time

RUNS = 20


def cost_ms(*words: str) -> tuple[float, float]:
    """Of `python WORDS`: elapsed time, and processor time (user and system); each the median of so many runs."""
    runs = [one_ms(words) for _ in range(RUNS)]
    return statistics.median(elapsed for elapsed, _ in runs), statistics.median(spent for _, spent in runs)


def one_ms(words: tuple[str, ...]) -> tuple[float, float]:
    spent, begun = spent_s(), time.perf_counter()
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begun) * 1000, (spent_s() - spent) * 1000


def spent_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
