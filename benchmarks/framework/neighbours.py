"""How much of the machine somebody else used while we measured.

A run on a busy machine is worth little: a peer with three threads gets three shares of the processor where one thread
gets one. The share of the others is printed and kept with the results, so that nobody has to guess.
"""

from __future__ import annotations

import os
from pathlib import Path


class Neighbours:
    def __init__(self) -> None:
        self._total, self._busy = _machine()
        self._own = _own()

    def share(self) -> float:
        """Of all processor time since the start, the part that others used; 0 is a quiet machine. 0 to 1."""
        total, busy = _machine()
        total, busy = total - self._total, busy - self._busy
        own = (_own() - self._own) * os.sysconf("SC_CLK_TCK")
        return min(1.0, max(0.0, (busy - own) / total)) if total else 0.0


def _machine() -> tuple[int, int]:
    """Ticks of all processors since boot: in total, and not idle."""
    # user nice system idle iowait irq softirq steal …
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), sum(ticks) - ticks[3] - ticks[4]


def _own() -> float:
    """Seconds used by this process and by the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
