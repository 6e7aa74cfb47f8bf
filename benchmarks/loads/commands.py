"""What a command costs: the processor time of its process, which other processes do not change much."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

RUNS = 20


def processor_ms(*words: str) -> float:
    """Of `python WORDS`, user and system, the median of so many runs."""
    return statistics.median(one_ms(words) for _ in range(RUNS))


def one_ms(words: tuple[str, ...]) -> float:
    before = spent_s()
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    return (spent_s() - before) * 1000


def spent_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
