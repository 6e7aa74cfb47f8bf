"""What `ixion pipeline report` prints and writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.checkpoint.run_records import RunRecord
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.run.report import report_html, report_lines, verdicts
from ixion.pipelines.spec import PipelineSpec


def chosen(spec: PipelineSpec, checkpoint: Checkpoint, run: str) -> tuple[RunRecord, list[BatchFigures]]:
    """The run whose id begins with RUN, and its batches; the last one if RUN is empty."""
    found = [record for record in checkpoint.runs() if record.id.startswith(run)]
    if not found:
        known = f"there is no run {run}" if run else f"pipeline {spec.name} has not run yet"
        raise PipelineError(known, hint="--list shows the runs that are kept" if run else "")
    record = found[-1]
    return record, [batch for batch in checkpoint.history() if batch.run == record.id]


def run_lines(runs: Sequence[RunRecord]) -> Iterator[str]:
    for record in runs:
        figures = record.figures
        rows = f"{figures.rows_in:,} in · {figures.rows_out:,} out · {figures.quarantined:,} quarantined"
        yield f"{record.id[:8]}  {record.began[:19]}Z  {record.outcome:<8}  {rows}" + (
            f" · {record.error}" if record.error else ""
        )


def said(
    spec: PipelineSpec, record: RunRecord, batches: Sequence[BatchFigures], *, page: Path | None, as_json: bool
) -> Iterator[str]:
    if page is not None:
        page.write_text(report_html(spec, record, batches), "utf-8")
        yield f"wrote {page}"
    elif as_json:
        expectations = [
            {"name": one.name, "check": one.check, "otherwise": one.otherwise, "broken": one.broken, "met": one.met}
            for one in verdicts(spec, record.figures.broken)
        ]
        yield json.dumps({"pipeline": spec.name, **record.to_json(), "expectations": expectations})
    else:
        yield from report_lines(spec, record, batches)
