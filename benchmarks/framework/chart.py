"""Draws an outcome as an SVG of grouped horizontal bars.

One group per row, one bar per contender. Rows have different units, so each group has its own scale: its longest bar
is as wide as the chart allows, and the number with its ratio to the baseline stands behind each bar. Colours come
from a style sheet inside the picture and follow the reader's light or dark setting.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from benchmarks.framework.model import Outcome, Row

WIDTH = 860
BAR_WIDTH = 560  # of the longest bar; the rest is for the numbers
MARGIN = 20
BAR = 16
GAP = 3
GROUP_HEAD = 26
GROUP_GAP = 16
LIGHT = ("#0b7a75", "#45b0a8", "#9aa5b1", "#d98324", "#b0486a", "#6f63b6", "#4a7fb5", "#8a6d3b")
DARK = ("#2fc4b8", "#1d837c", "#7d8794", "#f0a04b", "#d9708f", "#9a90e0", "#6ea8dc", "#c2a36b")

STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2933; }
.title { font-size: 17px; font-weight: 600; }
.row { font-weight: 600; }
.soft { fill: #616e7c; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.axis { fill: none; stroke: #9aa5b1; }
polyline, circle { stroke-width: 2; }
"""
DARK_STYLE = """
text { fill: #e4e7eb; }
.soft { fill: #9aa5b1; }
"""


def draw(outcome: Outcome, number: Callable[[float], str]) -> str:
    benchmark = outcome.benchmark
    colour = {name: index % len(LIGHT) for index, name in enumerate(outcome.contenders)}
    body: list[str] = []
    y = MARGIN + 17
    body.append(text(MARGIN, y, benchmark.title, "title"))
    y += 18
    y = _legend(body, outcome.contenders, colour, y)
    for row in benchmark.rows:
        if row.charted and any((row.key, name) in outcome.cells for name in outcome.contenders):
            y = _group(body, outcome, row, colour, number, y)
    body.append(
        text(MARGIN, y + 8, f"Medians; × = ratio to {benchmark.baseline}; each group has its own scale.", "soft")
    )
    height = y + 8 + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"<title>{escape(benchmark.title)}</title>\n<style>{style()}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


def _legend(body: list[str], names: tuple[str, ...], colour: dict[str, int], y: int) -> int:
    x = MARGIN
    for name in names:
        width = 26 + 8 * len(name)
        if x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + 20
        body.append(f'<rect class="c{colour[name]}" x="{x}" y="{y}" width="12" height="12" rx="2"/>')
        body.append(text(x + 17, y + 11, name))
        x += width
    return y + 12 + GROUP_GAP


def _group(
    body: list[str], outcome: Outcome, row: Row, colour: dict[str, int], number: Callable[[float], str], y: int
) -> int:
    measured = [(name, outcome.cells[row.key, name]) for name in outcome.contenders if (row.key, name) in outcome.cells]
    longest = max(sample.median for _, sample in measured) or 1.0
    body.append(text(MARGIN, y + 14, f"{row.label}, {row.unit}", "row"))
    y += GROUP_HEAD
    baseline = outcome.benchmark.baseline
    for name, sample in measured:
        width = max(2.0, BAR_WIDTH * sample.median / longest)
        body.append(
            f'<rect class="c{colour[name]}" x="{MARGIN}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2">'
            f"<title>{escape(name)}</title></rect>"
        )
        ratio = outcome.ratio((row.key, name), (row.key, baseline))
        label = number(sample.median)
        if ratio is not None and name != baseline:
            label += f" · {ratio:.2f} ×"
        body.append(text(round(MARGIN + width + 8), y + 13, label))
        y += BAR + GAP
    return y + GROUP_GAP


def text(x: int, y: int, words: str, kind: str = "") -> str:
    style_class = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{style_class}>{escape(words)}</text>'


def style() -> str:
    return f"{STYLE}{_colours(LIGHT)}@media (prefers-color-scheme: dark) {{{DARK_STYLE}{_colours(DARK)}}}\n"


def _colours(values: tuple[str, ...]) -> str:
    """Class c0, c1 … for areas, l0, l1 … for lines."""
    return "".join(
        f".c{index} {{ fill: {value}; }}\n.l{index} {{ fill: none; stroke: {value}; }}\n"
        for index, value in enumerate(values)
    )
