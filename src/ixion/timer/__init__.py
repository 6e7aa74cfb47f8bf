"""Hierarchical timing wheels: a timer for threads, a timer for an event loop, one core. Standard library only."""

# The modules of this package are compiled: see setup.py.

from ixion.timer.clock import Clock, ManualClock
from ixion.timer.collector import relax_collector
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.snapshot import LevelSnapshot, TimerSnapshot
from ixion.timer.system_timer import SystemTimer
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer, TimerClosedError

__all__ = [
    "Clock",
    "LevelSnapshot",
    "LoopTimer",
    "ManualClock",
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerSnapshot",
    "TimerTask",
    "relax_collector",
]
