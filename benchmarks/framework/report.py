"""An outcome as tables for the terminal, as JSON for later, as a chart for the documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.framework import chart, curve
from benchmarks.framework.model import Outcome, Sample
from devtools.cache import CHECKOUT

RESULTS = CHECKOUT / "benchmarks" / "results"
CHARTS = CHECKOUT / "docs" / "bench"


def number(value: float) -> str:
    """Three significant digits, thousands apart: 0.0312, 1.23, 45.6, 789, 12,300."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def show(outcome: Outcome, console: Console) -> None:
    console.print(_cells(outcome))
    if outcome.benchmark.goals:
        console.print(_goals(outcome))


def _cells(outcome: Outcome) -> Table:
    benchmark = outcome.benchmark
    table = Table(title=benchmark.title, caption=f"median (lowest to highest) · × {benchmark.baseline}")
    table.add_column("")
    for name in outcome.contenders:
        table.add_column(name, justify="right")
    for row in benchmark.rows:
        texts = []
        for name in outcome.contenders:
            sample = outcome.cells.get((row.key, name))
            if sample is None:
                texts.append("[dim]·[/dim]")
                continue
            text = f"[bold]{number(sample.median)}[/bold]"
            if sample.low != sample.high:
                text += f"\n[dim]{number(sample.low)} to {number(sample.high)}[/dim]"
            ratio = outcome.ratio((row.key, name), (row.key, benchmark.baseline))
            if ratio is not None and name != benchmark.baseline:
                text += f"\n{ratio:.2f} ×"
            texts.append(text)
        table.add_row(f"{row.label}, {row.unit}", *texts, end_section=True)
    return table


def _goals(outcome: Outcome) -> Table:
    table = Table(title="goals")
    table.add_column("goal")
    table.add_column("ratio", justify="right")
    table.add_column("wanted", justify="right")
    table.add_column("met")
    words = {True: "[green]yes[/green]", False: "[red]no[/red]", None: "[dim]not measured[/dim]"}
    for verdict in outcome.verdicts():
        ratio = "·" if verdict.ratio is None else f"{verdict.ratio:.2f}"
        table.add_row(verdict.goal.label, ratio, verdict.goal.wanted, words[verdict.met])
    return table


def as_json(outcome: Outcome, machine: dict[str, str | int]) -> dict[str, Any]:
    benchmark = outcome.benchmark
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "baseline": benchmark.baseline,
        "machine": machine,
        "rows": [
            {
                "key": row.key,
                "label": row.label,
                "unit": row.unit,
                "contenders": {
                    name: {
                        "median": round(sample.median, 3),
                        "low": round(sample.low, 3),
                        "high": round(sample.high, 3),
                        "values": [round(value, 3) for value in sample.values],
                        "ratio": _rounded(outcome.ratio((row.key, name), (row.key, benchmark.baseline))),
                    }
                    for name in outcome.contenders
                    if (sample := outcome.cells.get((row.key, name)))
                },
            }
            for row in benchmark.rows
        ],
        "goals": [
            {
                "label": verdict.goal.label,
                "ratio": _rounded(verdict.ratio),
                "wanted": verdict.goal.wanted,
                "met": verdict.met,
            }
            for verdict in outcome.verdicts()
        ],
        "curves": [
            {
                "title": each.title,
                "size": each.size,
                "unit": each.unit,
                "points": {str(size): key for size, key in each.points.items()},
                "more_is_better": each.more_is_better,
            }
            for each in benchmark.curves
        ],
    }


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 3)


def measured_elsewhere(name: str, machine: dict[str, str | int]) -> str:
    """The processor of the last saved run, if it is another: the two cannot be compared. Empty otherwise."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return ""
    last = str(json.loads(path.read_text())["machine"]["processor"])
    return "" if last == machine["processor"] else last


def with_last(outcome: Outcome, others_percent: int) -> tuple[Outcome, int]:
    """The outcome, with what the last saved run has measured and this one has not; and the larger share of others."""
    path = RESULTS / f"{outcome.benchmark.name}.json"
    if not path.exists():
        return outcome, others_percent
    last = json.loads(path.read_text())
    cells = {
        (row["key"], name): Sample(tuple(found["values"]))
        for row in last["rows"]
        for name, found in row["contenders"].items()
    }
    names = dict.fromkeys([name for _, name in cells] + list(outcome.contenders))
    merged = Outcome(outcome.benchmark, tuple(names), {**cells, **outcome.cells})
    return merged, max(others_percent, last["machine"]["used_by_others_percent"])


def save(outcome: Outcome, machine: dict[str, str | int]) -> tuple[Path, Path]:
    """Writes benchmarks/results/NAME.json and docs/bench/NAME.svg."""
    results = RESULTS / f"{outcome.benchmark.name}.json"
    picture = CHARTS / f"{outcome.benchmark.name}.svg"
    for path in (results, picture):
        path.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(as_json(outcome, machine), indent=1, ensure_ascii=False) + "\n")
    draw = curve.draw if outcome.benchmark.curves else chart.draw
    picture.write_text(draw(outcome, number))
    return results, picture
