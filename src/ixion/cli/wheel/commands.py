"""`ixion wheel`: watch a hierarchical timing wheel at work.

In a terminal it draws on the alternate screen until Ctrl-C or the end of `--seconds`, then gives the terminal back as
it was and prints a summary. If the output is a pipe or a file it prints a line per second, without escape codes.
Either way it ends with exit code 0 and leaves no thread.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ixion.cli.command import Command, Option, UsageError, number, whole

if TYPE_CHECKING:
    from types import FrameType

    from ixion.cli.wheel.broker import BrokerObserver
    from ixion.cli.wheel.reading import Observer

NAP_SECONDS = 0.05  # how soon Ctrl-C is noticed
MAX_RATE = 100_000
MAX_FPS = 60
SWITCH_SECONDS = 0.0005  # drawing may hold up a due task by this much, not by the interpreter's usual 5 ms


def wheel(rate: int, cancel: float, seconds: float | None, fps: int, broker: str | None) -> None:
    if not 1 <= rate <= MAX_RATE:
        raise UsageError(f"--rate must be from 1 to {MAX_RATE} tasks per second, not {rate}")
    if not 0 <= cancel <= 1:
        raise UsageError(f"--cancel must be a fraction from 0 to 1, not {cancel:g}")
    if seconds is not None and not seconds > 0:
        raise UsageError(f"--seconds must be more than 0, not {seconds:g}")
    if not 1 <= fps <= MAX_FPS:
        raise UsageError(f"--fps must be from 1 to {MAX_FPS}, not {fps}")

    if broker is not None:
        watch_broker(broker, seconds, fps)
        return

    from ixion.cli.wheel.lines import summary
    from ixion.cli.wheel.load import WheelLoad
    from ixion.cli.wheel.reading import Observer

    with stop_signals() as stop, WheelLoad(rate, cancel) as load:
        observer = Observer(load)
        if can_draw():
            draw(observer, stop, seconds, fps, title=f"{rate:,} tasks/s of 5 ms to 5 min, {cancel:.0%} cancelled")
        else:
            print_lines(observer, stop, seconds)
        print(summary(observer.summary()))


def watch_broker(address: str, seconds: float | None, fps: int) -> None:
    from ixion.cli.wheel.broker import BrokerObserver

    with stop_signals() as stop:
        observer = BrokerObserver(address)
        if can_draw():
            draw(observer, stop, seconds, fps, title=observer.title)
        else:
            print_lines(observer, stop, seconds)
        print("\n".join(observer.lines()))


class Stop:
    """A flag that a signal sets. A handler may run between any two steps, so it must not take a lock."""

    def __init__(self) -> None:
        self.wanted = False

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        self.wanted = True


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Turn SIGINT and SIGTERM into a flag, so that neither interrupts the closing lines."""
    stop = Stop()
    before = {number: signal.signal(number, stop.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def can_draw() -> bool:
    encoding = sys.stdout.encoding or ""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and encoding.lower().startswith("utf")


def pauses(observer: Observer | BrokerObserver, stop: Stop, seconds: float | None, every: float) -> Iterator[None]:
    """Yield every `every` seconds, the last time at the end; end at a stop."""
    end = float("inf") if seconds is None else seconds
    at = 0.0
    while True:
        at = max(at + every, observer.elapsed_seconds)  # behind a slow terminal, skip frames
        while (now := observer.elapsed_seconds) < min(at, end) and not stop.wanted:
            time.sleep(min(NAP_SECONDS, min(at, end) - now))
        if stop.wanted:
            return
        yield
        if now >= end:
            return


def draw(observer: Observer | BrokerObserver, stop: Stop, seconds: float | None, fps: int, *, title: str) -> None:
    from rich.console import Console
    from rich.live import Live

    from ixion.cli.wheel.view import render

    console = Console()
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for _ in pauses(observer, stop, seconds, 1 / fps):
                width, height = console.size
                reading = observer.reading()
                below: list[str] = getattr(observer, "lines", list)()
                shown = render(reading, title=title, width=width, height=height - len(below))
                live.update(shown.append("\n" + "\n".join(below)) if below else shown, refresh=True)
    finally:
        sys.setswitchinterval(usual)


def print_lines(observer: Observer | BrokerObserver, stop: Stop, seconds: float | None) -> None:
    from ixion.cli.wheel.lines import line

    for _ in pauses(observer, stop, seconds, 1.0):
        print(line(observer.reading()), flush=True)


WHEEL: Final = Command(
    "wheel",
    "Watch a live timing wheel: tasks of 5 ms to 5 minutes wait, fall from level to level, and run.",
    wheel,
    options=(
        Option("rate", "--rate", "Tasks added per second.", metavar="N", kind=whole(), default=500),
        Option(
            "cancel",
            "--cancel",
            "The share of them that is cancelled, 0 to 1.",
            metavar="SHARE",
            kind=number,
            default=0.25,
        ),
        Option("seconds", "--seconds", "Stop after this time (default: at Ctrl-C).", metavar="N", kind=number),
        Option(
            "broker",
            "--broker",
            "Show the wheel and the delayed records of the running broker with this metrics address.",
            metavar="ADDRESS",
        ),
        Option("fps", "--fps", "Frames per second.", metavar="N", kind=whole(), default=10),
    ),
)
