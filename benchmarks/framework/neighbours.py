"""How much of the machine other processes used while we measured.

A run on a busy machine is worth little: a peer with three threads gets three shares of the processor where one thread
gets one. The share of the others is printed and kept with the results, so that nobody has to guess.
"""

from __future__ import annotations

import os
from pathlib import Path


class Neighbours:
    def __init__(self) -> None:
        self._total, self._busy = _machine()
        self._own = own_seconds()

    def share(self) -> float:
        """Of all processor time since the start, the part that others used; 0 is a quiet machine. 0 to 1."""
        total, busy = _machine()
        total, busy = total - self._total, busy - self._busy
        own = (own_seconds() - self._own) * os.sysconf("SC_CLK_TCK")
        return min(1.0, max(0.0, (busy - own) / total)) if total else 0.0


def _machine() -> tuple[int, int]:
    """Ticks of all processors since boot: in total, and not idle."""
    # user nice system idle iowait irq softirq steal …
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), sum(ticks) - ticks[3] - ticks[4]


def own_seconds() -> float:
    """Seconds used by this process, by the children it has waited for, and by all that live below it: brokers, JVMs."""
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + _living(os.getpid()) / os.sysconf("SC_CLK_TCK")


def _living(pid: int) -> int:
    """Ticks used by the descendants of PID, and by those that they have waited for."""
    used: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        below.setdefault(int(fields[1]), []).append(int(entry.name))
        used[int(entry.name)] = sum(int(ticks) for ticks in fields[11:15])
    waiting = list(below.get(pid, ()))
    total = 0
    while waiting:
        child = waiting.pop()
        total += used[child]
        waiting += below.get(child, ())
    return total
