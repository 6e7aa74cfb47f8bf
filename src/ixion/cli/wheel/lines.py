"""`ixion wheel` in words: the line per second where there is no terminal, and the summary at the end."""

from __future__ import annotations

from ixion.cli.wheel.reading import Reading


def per_second(rate: float) -> str:
    return f"{rate:.1f}" if 0 < rate < 9.95 else f"{rate:,.0f}"


def lateness(reading: Reading) -> str:
    return f"p50 {reading.late_p50_ms:.1f} ms, p99 {reading.late_p99_ms:.1f} ms, latest {reading.late_max_ms:.1f} ms"


def process(reading: Reading) -> str:
    memory = "" if reading.memory_bytes is None else f" · {reading.memory_bytes / 1e6:.0f} MB"
    return f"CPU {reading.cpu_percent:.0f} %{memory}"


def line(reading: Reading) -> str:
    """One second in one line: what waits (on each level, the finest first), what moved, how late it was."""
    levels = " + ".join([str(sum(level.state.counts)) for level in reading.levels])
    return (
        f"{reading.elapsed_seconds:4.0f} s  {reading.timer.size:,} waiting ({levels}); a second: "
        f"{per_second(reading.added)} added, {per_second(reading.ran)} ran, "
        f"{per_second(reading.cancelled)} cancelled, {per_second(reading.fell)} fell; late {lateness(reading)}; "
        f"{process(reading)}"
    )


def summary(reading: Reading) -> str:
    """The whole run, in three lines."""
    timer = reading.timer
    return (
        f"{reading.elapsed_seconds:.1f} s: {timer.added:,} tasks added, {per_second(reading.added)} a second\n"
        f"{timer.expired:,} ran, {timer.cancelled:,} cancelled, {timer.size:,} still waited; "
        f"{timer.fell:,} falls between {len(timer.levels)} levels\n"
        f"late {lateness(reading)}; {process(reading)}"
    )
