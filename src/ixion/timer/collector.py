"""Garbage collection for programs that keep very many tasks waiting.

Every waiting task whose class is written in Python is an object that Python's cyclic collector visits, at about 250 ns
each. With its default thresholds it looks after every 700 new objects and walks *all* of them whenever their number
has grown by a quarter. Measured on two cores: a purgatory at 200 thousand requests a second, a timer that runs 100
thousand tasks a second, and one that runs a million within a second of their being added. The rows come from several
runs, some of them on a busy machine, so they show orders of magnitude; `make bench` compares the settings in one run:

    thresholds           collector's cost per request    lateness p99     the million took
    (700, 10, 10)        1,380 ns                        3.5 to 40 ms     2.9 s
    (50,000, 20, 100)    48 ns                           2.5 to 10 ms     1.4 s of CPU
    (5,000, 5, 2,000)    about 300 ns                    1.6 to 2.3 ms    1.8 s
    collector off        0                                                1.3 s

Tasks are freed by reference counts: the collector finds nothing to do in a timer. So `relax_collector` keeps it from
walking everything, lets it look at young objects in portions of about a millisecond, and hides from it what exists
already. It changes a setting of the whole process, so it is for the program to call, not for this library.
"""

from __future__ import annotations

import gc
from typing import Final

RELAXED: Final = (5_000, 5, 2_000)


def relax_collector() -> None:
    """Let the collector pause the program only briefly. Call it once, when the program has been set up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RELAXED)
