"""Garbage collection for programs that keep very many tasks waiting.

Python's cyclic collector visits every waiting task whose class is written in Python, at about 250 ns each. With its
default thresholds it runs after every 700 new objects, and walks *all* objects whenever their number has grown by a
quarter. Measured on two cores: a purgatory at 200 thousand requests per second, a timer that runs 100 thousand tasks
per second, and one that runs a million tasks within a second after they were added. The rows come from several runs,
some of them on a busy machine, so they show orders of magnitude; `make bench` compares the settings in one run:

    thresholds           collector's cost per request    lateness p99     the million took
    (700, 10, 10)        1,380 ns                        3.5 to 40 ms     2.9 s
    (50,000, 20, 100)    48 ns                           2.5 to 10 ms     1.4 s of CPU
    (5,000, 5, 2,000)    about 300 ns                    1.6 to 2.3 ms    1.8 s
    collector off        0                                                1.3 s

Tasks are freed by reference counts, so the collector finds nothing to free in a timer. `relax_collector` makes full
collections rare, limits a collection of young objects to about a millisecond, and excludes (freezes) the objects that
exist already. It changes the whole process, so the program calls it, not this library.
"""

from __future__ import annotations

import gc
from typing import Final

RELAXED: Final = (5_000, 5, 2_000)


def relax_collector() -> None:
    """Make the collector's pauses short. Call it once, when the program has started up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RELAXED)
