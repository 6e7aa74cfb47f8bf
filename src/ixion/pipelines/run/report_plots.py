"""The plots of a report, as SVG: for each batch its rows, how long it took, and how far it was behind.

A plot has a bar for each batch and its largest value in the caption; the words of a batch are shown when the pointer is
on its bar. Rows that were left out (quarantined, dropped, late) are the lower part of a bar, in red. A quantity that is
0 in all batches has no plot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from ixion.pipelines.batch.metrics import BatchFigures

HEIGHT: Final = 100


class Plot(NamedTuple):
    name: str
    value: Callable[[BatchFigures], float]
    words: Callable[[float], str]
    part: Callable[[BatchFigures], float] = lambda _: 0  # of the value, in red


def left_out(batch: BatchFigures) -> int:
    return batch.quarantined + batch.dropped + batch.late


PLOTS: Final = (
    Plot("rows read, and left out", lambda batch: batch.rows_in, "{:,.0f}".format, left_out),
    Plot("seconds", lambda batch: batch.duration_ms / 1000, "{:,.1f}".format),
    Plot("records behind the end of the topics (lag)", lambda batch: batch.lag, "{:,.0f}".format),
    Plot("records in quarantine", lambda batch: batch.quarantined, "{:,.0f}".format),
    Plot("records with fields that are not in the schema", lambda batch: batch.drifted, "{:,.0f}".format),
)


def plots(batches: Sequence[BatchFigures]) -> Iterator[str]:
    for plot in PLOTS:
        most = max((plot.value(batch) for batch in batches), default=0)
        if most:
            caption = escape(f"{plot.name}; at most {plot.words(most)}")
            yield f"<figure>{bars(plot, batches, most)}<figcaption>{caption}</figcaption></figure>"


def bars(plot: Plot, batches: Sequence[BatchFigures], most: float) -> str:
    width = max(4, 600 // len(batches))
    found = []
    for number, batch in enumerate(batches):
        whole, red = HEIGHT * plot.value(batch) / most, min(1, plot.part(batch) / most) * HEIGHT
        place = f"x={number * width} width={width - 1}"
        words = escape(batch.line())
        found.append(f"<rect {place} y={HEIGHT - whole:.1f} height={whole:.1f} fill=#4a7><title>{words}</title></rect>")
        if red:
            found.append(f"<rect {place} y={HEIGHT - red:.1f} height={red:.1f} fill=#c43 />")
    size = f"viewBox='0 0 {width * len(batches)} {HEIGHT}' width=100% height=120"
    return f"<svg {size} preserveAspectRatio=none>{''.join(found)}</svg>"
