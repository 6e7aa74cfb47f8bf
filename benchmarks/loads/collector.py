"""The three ways in which Python's garbage collector takes part in a measurement."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from typing import Literal

from ixion.timer import relax_collector

# relaxed: as a program with many tasks sets it; default: Python's own thresholds; off: none
Collector = Literal["relaxed", "default", "off"]


def set_collector(collector: Collector) -> None:
    """For the rest of this process. Call it when everything is set up."""
    gc.collect()
    if collector == "relaxed":
        relax_collector()
    elif collector == "off":
        gc.disable()


class GcWatch:
    """Counts the collector's runs and their processor time, during which nothing else of the program goes on."""

    def __init__(self) -> None:
        self.runs = 0
        self.total_ns = 0
        self.longest_ns = 0
        self._start = 0
        gc.callbacks.append(self._on_gc)

    def _on_gc(self, phase: str, info: Mapping[str, int]) -> None:  # noqa: ARG002 - the collector's signature
        if phase == "start":
            self._start = time.thread_time_ns()
        else:
            took = time.thread_time_ns() - self._start
            self.runs += 1
            self.total_ns += took
            self.longest_ns = max(self.longest_ns, took)

    def close(self) -> None:
        gc.callbacks.remove(self._on_gc)
