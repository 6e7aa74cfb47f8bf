"""Older records into the same table: those that were not read, each once."""

from __future__ import annotations

import pytest

from ixion.cli.pipeline_again import backfilled_lines, place_of
from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.spec.source import Start
from tests.pipelines.crash import crash_before
from tests.pipelines.support import Lab, column

TEXT = '[format]\ntype = "json"\nschema = "n INT"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
EARLIEST, LATEST = Start(kind="earliest"), Start(kind="latest")


def test_what_was_before_the_first_run_is_read_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches; the process ends when the first is in the table and not yet marked."""
    from ixion.pipelines.files import Files

    lab.send(*({"n": n} for n in range(5)))
    pipeline = lab.pipeline(TEXT, source='start = "latest"\nmax_records_per_batch = 3\n')
    with pytest.raises(PipelineError, match="has not run yet"):
        pipeline.backfill(lab.spark, EARLIEST, LATEST)
    pipeline.run(lab.spark)
    lab.send({"n": 5}, {"n": 6})
    pipeline.run(lab.spark)
    assert column(lab.rows(), "n") == [5, 6]
    dry = pipeline.backfill(lab.spark, EARLIEST, LATEST, dry=True)
    said = [f"{lab.topic}-0: offsets 0 to 4 left to be read"]
    assert list(backfilled_lines(dry, dry=True, as_json=False)) == said
    with monkeypatch.context() as patch:
        patch.setattr(Files, "write_new", crash_before(Files, "write_new", 3))  # plan, rules and list of batch 0
        with pytest.raises(PipelineError):
            pipeline.backfill(lab.spark, EARLIEST, LATEST)
    assert column(lab.rows(), "n") == [0, 1, 2, 5, 6]
    assert pipeline.backfill(lab.spark, EARLIEST, LATEST).portions == ()  # all is noted; the rest is written
    assert column(lab.rows(), "n") == list(range(7))
    pipeline.run(lab.spark)
    assert column(lab.rows(), "n") == list(range(7))


def test_what_a_place_is() -> None:
    assert place_of("2026-01-31T08:00:00", "--from") == Start(kind="time", time_ms=1_769_846_400_000)
    assert (place_of("earliest", "--from"), place_of("latest", "--to")) == (EARLIEST, LATEST)
    with pytest.raises(SpecError, match="--to is 'yesterday'"):
        place_of("yesterday", "--to")
