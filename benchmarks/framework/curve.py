"""Curves: how a measure goes with a size, and where it bends.

A curve is a list of rows of a benchmark, one for each size. The *knee* is the first size at which the measure is half
as good as at its best size before: a rate has halved, or a time or a memory has doubled. Up to there more of it is
nearly free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from html import escape

from benchmarks.framework.chart import MARGIN, WIDTH, style, text
from benchmarks.framework.model import Curve, Outcome

COLUMNS = 2
GAP = 34
PLOT = 170  # height of the lines alone
HEAD = 44
FOOT = 34
AXIS = 58  # room for the numbers on the left
HALF = 2.0


def knee(curve: Curve, values: Mapping[int, float]) -> int | None:
    """The size at which the curve bends, None if it does not."""
    best: float | None = None
    for size in sorted(values):
        value = values[size]
        if best is not None and best > 0 and (value * HALF <= best if curve.more_is_better else value >= best * HALF):
            return size
        best = value if best is None else (max if curve.more_is_better else min)(best, value)
    return None


def values_of(outcome: Outcome, curve: Curve, name: str) -> dict[int, float]:
    """By size, as far as it was measured."""
    return {
        size: sample.median
        for size, key in curve.points.items()
        if (sample := outcome.cells.get((key, name))) is not None
    }


def draw(outcome: Outcome, number: Callable[[float], str]) -> str:
    """All curves of a benchmark as small plots; both axes are logarithmic. The knee of a line is a ring."""
    title = outcome.benchmark.title
    colour = {name: index for index, name in enumerate(outcome.contenders)}
    body = [text(MARGIN, MARGIN + 17, title, "title")]
    x = MARGIN
    for name in outcome.contenders:
        body.append(f'<rect class="c{colour[name]}" x="{x}" y="{MARGIN + 30}" width="12" height="12" rx="2"/>')
        body.append(text(x + 17, MARGIN + 41, name))
        x += 26 + 8 * len(name)
    top = MARGIN + 62
    width = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) // COLUMNS
    height = HEAD + PLOT + FOOT
    drawn = 0
    for curve in outcome.benchmark.curves:
        lines = {name: values for name in outcome.contenders if (values := values_of(outcome, curve, name))}
        if lines:
            left = MARGIN + (width + GAP) * (drawn % COLUMNS)
            _plot(body, curve, lines, colour, number, left, top + height * (drawn // COLUMNS), width)
            drawn += 1
    bottom = top + height * -(-drawn // COLUMNS)
    body.append(text(MARGIN, bottom, "Medians; both axes are logarithmic; a ring marks a knee: half as good.", "soft"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + MARGIN}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{style()}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


def _plot(
    body: list[str],
    curve: Curve,
    lines: Mapping[str, Mapping[int, float]],
    colour: Mapping[str, int],
    number: Callable[[float], str],
    left: int,
    top: int,
    width: int,
) -> None:
    body.append(text(left, top + 14, curve.title, "row"))
    body.append(text(left, top + 31, f"{curve.unit} by {curve.size}", "soft"))
    sizes = sorted({size for values in lines.values() for size in values})
    high = max(value for values in lines.values() for value in values.values())
    low = min(value for values in lines.values() for value in values.values())
    low = max(min(low, high / 10), high / 1e6)  # a flat line stays flat; zero has no place on such an axis
    x0, x1, y0, y1 = left + AXIS, left + width - 8, top + HEAD, top + HEAD + PLOT

    def across(size: int) -> float:
        span = math.log(sizes[-1] / sizes[0]) or 1.0
        return x0 + (x1 - x0) * math.log(size / sizes[0]) / span

    def up(value: float) -> float:
        return y1 - (y1 - y0) * math.log(max(value, low) / low) / math.log(high / low)

    body.append(f'<path class="axis" d="M{x0} {y0}V{y1}H{x1}"/>')
    body += [text(x0 - 6, y, number(value), "soft end") for value, y in ((high, y0 + 5), (low, y1))]
    body += [text(round(across(size)), y1 + 16, _short(size), "soft middle") for size in sizes]
    for name, values in lines.items():
        places = [(across(size), up(value)) for size, value in sorted(values.items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        body.append(f'<polyline class="l{colour[name]}" points="{path}"><title>{escape(name)}</title></polyline>')
        body += [f'<circle class="c{colour[name]}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places]
        bend = knee(curve, values)
        if bend is not None:
            body.append(f'<circle class="l{colour[name]}" cx="{across(bend):.1f}" cy="{up(values[bend]):.1f}" r="7"/>')


def _short(size: int) -> str:
    for limit, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= limit:
            return f"{size // limit}{letter}"
    return str(size)


def table(curve: Curve, contenders: Mapping[str, Mapping[int, float]], number: Callable[[float], str]) -> list[str]:
    """The lines of a table in Markdown: a row for each contender, a column for each size, and the knee."""
    sizes = list(curve.points)
    lines = [
        f"**{curve.title}**, {curve.unit}:",
        "",
        f"| {curve.size} | {' | '.join(f'{size:,}' for size in sizes)} | knee |",
        "|---" * (len(sizes) + 2) + "|",
    ]
    for name, values in contenders.items():
        bend = knee(curve, values)
        cells = [number(values[size]) if size in values else "·" for size in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} | {f'{bend:,}' if bend is not None else 'none'} |")
    return [*lines, ""]
