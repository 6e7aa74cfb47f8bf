"""The live line of a run on a terminal: how much of what is there has been read, how fast, and when it will be done.

━━━━━━━━━━━━╺━━━━━━━ 60 % · 1,200 rows in · 400 rows/s · lag 800 · about 2 s left
"""

from __future__ import annotations

from typing import Final

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures

WIDTH: Final = 20


def live_line(figures: RunFigures, batch: BatchFigures, *, follow: bool) -> str:
    """FIGURES are those of the run, BATCH is its last one. A run that follows has no end, so neither bar nor time."""
    parts = [f"{figures.rows_in:,} rows in", f"{batch.rows_per_s:,.0f} rows/s", f"lag {batch.lag:,}"]
    known = figures.rows_in + batch.lag
    if follow or not known:
        return " · ".join(parts)
    share = figures.rows_in / known
    full = int(share * WIDTH)
    bar = "━" * full + ("╺" + "━" * (WIDTH - full - 1) if full < WIDTH else "")
    if batch.lag and figures.rows_per_s:
        parts.append(f"about {span(batch.lag / figures.rows_per_s)} left")
    return " · ".join([f"{bar} {int(share * 100)} %", *parts])


def span(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
