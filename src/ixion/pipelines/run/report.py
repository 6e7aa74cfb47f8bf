"""The report of a run: lines for a terminal, or one self-contained HTML page.

Both have the run and how it ended, rows, each expectation with the rows that do not meet it, fields that are not in the
schema, the batches, and where everything went.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures
from ixion.pipelines.checkpoint.run_records import RunRecord
from ixion.pipelines.run.report_plots import plots
from ixion.pipelines.spec.pipeline import PipelineSpec

SHOWN: Final = 50  # batches, the last ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one expectation."""

    name: str
    check: str
    otherwise: str
    broken: int | None  # rows; None if a single one ends the run

    @property
    def met(self) -> bool:
        return not self.broken


def verdicts(spec: PipelineSpec, broken: Mapping[str, int]) -> list[Verdict]:
    return [
        Verdict(
            name=one.name,
            check=one.check,
            otherwise=one.otherwise,
            broken=None if one.otherwise == "fail" else broken.get(one.name, 0),
        )
        for one in spec.expectations
    ]


def report_lines(spec: PipelineSpec, record: RunRecord, batches: Sequence[BatchFigures]) -> Iterator[str]:
    for name, value in _facts(spec, record):
        yield f"{name:<12}{value}"
    for one in verdicts(spec, record.figures.broken):
        yield f"{'met' if one.met else 'NOT MET':<12}{one.name}: {one.check} · {_rows(one)}"
    for field, done in record.figures.new_fields.items():
        yield f"{'new field':<12}{field} ({done})"
    for batch in batches[-SHOWN:]:
        yield f"{batch.ended}  {batch.line()}"


def report_html(spec: PipelineSpec, record: RunRecord, batches: Sequence[BatchFigures]) -> str:
    shown = batches[-SHOWN:]
    rows = [
        [one.name, one.check, one.otherwise, "met" if one.met else "not met", _rows(one)]
        for one in verdicts(spec, record.figures.broken)
    ]
    parts = [
        f"<h1>{escape(spec.name)} <small class={escape(record.outcome)}>{escape(record.outcome)}</small></h1>",
        _table((), _facts(spec, record)),
        "<h2>Expectations</h2>",
        _table(("name", "check", "otherwise", "result", "rows"), rows) if rows else "<p>none</p>",
    ]
    if record.figures.new_fields:
        fields = sorted(record.figures.new_fields.items())
        parts += ["<h2>Fields that are not in the schema</h2>", _table(("field", "what was done"), fields)]
    if shown:
        parts += ["<h2>Batches</h2>", *plots(shown), _table(_COLUMNS, [_row(batch) for batch in shown])]
    body = "\n".join(parts)
    title = f"{escape(spec.name)}: run of {escape(record.began)}"
    return f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{title}</title>\n{_STYLE}\n{body}\n</html>\n"


def _facts(spec: PipelineSpec, record: RunRecord) -> list[tuple[str, str]]:
    figures = record.figures
    lines = [("pipeline", spec.name), ("run", record.id), ("outcome", record.outcome)]
    if record.error:
        lines.append(("error", record.error))
    lines.append(("began", record.began))
    if record.ended:
        lines.append(
            (
                "ended",
                f"{record.ended}, after {_seconds(record):,.1f} s, {figures.busy_ms / 1000:,.1f} s of them in batches",
            )
        )
    lines += [
        ("source", ", ".join(spec.source.topics) or f"topics like {spec.source.pattern}"),
        ("rows", _counts(figures)),
        ("lag", f"{figures.lag:,}"),
        *(("sink", sink.label) for sink in spec.sinks),
        ("quarantine", spec.quarantine.label),
    ]
    return lines


def _counts(figures: RunFigures) -> str:
    names = ("rows_out", "quarantined", "dropped", "late", "warned")
    words = {"rows_out": "out"}
    parts = [f"{getattr(figures, name):,} {words.get(name, name)}" for name in names if getattr(figures, name)]
    return ", ".join([f"{figures.rows_in:,} in", *parts, f"in {figures.batches:,} batches"])


def _seconds(record: RunRecord) -> float:
    return (datetime.fromisoformat(record.ended) - datetime.fromisoformat(record.began)).total_seconds()


def _rows(one: Verdict) -> str:
    if one.broken is None:
        return "a row that does not meet it ends the run"
    return f"{one.broken:,} rows do not meet it" + (f" ({one.otherwise})" if one.broken else "")


_COLUMNS: Final = ("batch", "ended", "in", "out", "quarantined", "dropped", "lag", "seconds", "rows/s")


def _row(batch: BatchFigures) -> list[str]:
    counts = (batch.rows_in, batch.rows_out, batch.quarantined, batch.dropped, batch.lag)
    took = f"{batch.duration_ms / 1000:.1f}", f"{batch.rows_per_s:,.0f}"
    return [str(batch.batch), batch.ended, *(f"{count:,}" for count in counts), *took]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if head else ""
    lines = (f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{names}{''.join(lines)}</table>"


_STYLE: Final = """<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #ddd }
small { font-size: 60%; padding: .1rem .5rem; border-radius: .3rem; background: #ddd }
figure { margin: 1rem 0 } figcaption { color: #666; font-size: 85% }
.complete { background: #cec } .failed { background: #ecc }
</style>"""
