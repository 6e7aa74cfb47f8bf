"""Figures as lines, as JSON, as Prometheus text; and what a checkpoint keeps of them."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.cli.pipeline.metrics import serve_figures
from ixion.pipelines.batch.metrics import BatchFigures, RunFigures, prometheus, prometheus_of, total
from ixion.pipelines.checkpoint.checkpoint import LocalFiles, open_checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.example_orders import order_events
from ixion.pipelines.spec import read_spec
from ixion.pipelines.upkeep.results import Upkept, upkeep_lines
from tests.pipelines.crash import CrashError, crash_before

SPEC = '[source]\ntopics = ["a"]\n[format]\ntype = "text"\n[[sinks]]\ntype = "console"\n'
FIRST = BatchFigures(batch=0, rows_in=10, rows_out=8, quarantined=2, lag=5, duration_ms=500, rows_per_s=20.0)
SECOND = BatchFigures(batch=1, rows_in=5, rows_out=5, duration_ms=500, rows_per_s=10.0, warned={"big": 1})


def test_a_batch_is_a_line() -> None:
    assert FIRST.line() == "batch 0 · 10 rows in · 8 out · 2 quarantined · 20 rows/s · lag 5 · 0.5 s"


def test_a_run_adds_up() -> None:
    figures = total([FIRST, SECOND])
    assert (figures.batches, figures.rows_in, figures.rows_out, figures.warned, figures.lag) == (2, 15, 13, 1, 0)
    assert figures.rows_per_s == 15.0


def test_prometheus_text() -> None:
    text = prometheus("shop", total([FIRST, SECOND]))
    assert '# TYPE ixion_pipeline_rows_in_total counter\nixion_pipeline_rows_in_total{pipeline="shop"} 15\n' in text
    assert 'ixion_pipeline_lag{pipeline="shop"} 0\n' in text
    assert 'ixion_pipeline_last_batch_ms{pipeline="shop"} 500\n' in text
    at = replace(SECOND, ended="2026-01-31T08:00:00.000Z")
    fresh = prometheus("shop", total([FIRST, at, SECOND]))
    assert 'ixion_pipeline_last_batch_at{pipeline="shop"} 1769846400.0\n' in fresh


def test_figures_of_several_pipelines_name_each_metric_once() -> None:
    text = prometheus_of({"shop": total([FIRST]), "other": total([SECOND])})
    lines = text.splitlines()
    assert sum(line.startswith("# TYPE ixion_pipeline_rows_in_total ") for line in lines) == 1
    assert [line for line in lines if line.startswith("ixion_pipeline_rows_in_total")] == [
        'ixion_pipeline_rows_in_total{pipeline="shop"} 10',
        'ixion_pipeline_rows_in_total{pipeline="other"} 5',
    ]
    with (
        serve_figures(["shop", "other"], 0) as page,
        urllib.request.urlopen(f"http://127.0.0.1:{page.port}/figures", timeout=10) as answer,
    ):
        assert [one["pipeline"] for one in json.load(answer)] == ["shop", "other"]


def test_figures_are_served_while_a_pipeline_runs() -> None:
    with serve_figures(["shop"], 0) as page:
        page.add("shop", FIRST)

        def get(path: str) -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{page.port}{path}", timeout=10) as answer:
                text: str = answer.read().decode()
                return text

        assert get("/metrics") == prometheus("shop", total([FIRST]))
        assert json.loads(get("/figures"))["rows_in"] == 10
        for _ in range(2):
            page.add_upkeep("shop", Upkept(table="delta a", at="", joined=3, into=1, removed_bytes=7))
        assert 'upkeep_joined_files_total{pipeline="shop",table="delta a"} 6\n' in get("/metrics")
        assert json.loads(get("/figures"))["upkeep"]["delta a"]["removed_bytes"] == 14


def test_what_upkeep_saved_is_summed_up_in_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(str(tmp_path / "c"))
    checkpoint.remember_upkeep("t", Upkept(table="t", at="1", removed_files=2, seconds=0.5).to_json())
    checkpoint.remember_upkeep("t", {"at": "2"})  # it failed
    checkpoint.remember_upkeep("t", Upkept(table="t", at="3", removed_files=1).to_json())
    assert checkpoint.upkeep()["t"]["removed_files"] == 1
    assert checkpoint.upkeep_totals()["t"]["removed_files"] == 3
    assert "".join(upkeep_lines({"p": checkpoint.upkeep_totals()})).count('{pipeline="p",table="t"}') == 6


def test_a_checkpoint_keeps_figures_schema_and_owner(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(str(tmp_path / "c"))
    checkpoint.claim(read_spec(SPEC, file="shop.toml"))
    checkpoint.remember(FIRST)
    checkpoint.remember(SECOND)
    checkpoint.remember(BatchFigures(batch=1, repeated=True))  # counted before: that stays
    assert checkpoint.history() == [FIRST, SECOND]
    assert checkpoint.schema() is None
    checkpoint.pin_schema("a INT")
    assert checkpoint.schema() == "a INT"
    checkpoint.claim(read_spec(SPEC, file="shop.toml"))
    with pytest.raises(PipelineError, match="belongs to pipeline shop, which reads a"):
        checkpoint.claim(read_spec(SPEC, file="other.toml"))


def test_figures_of_old_batches_stay_in_the_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run was killed before it stored the figures of batch 2, another one when it was to remove a file."""
    monkeypatch.setattr("ixion.pipelines.checkpoint.checkpoint.KEPT", 3)
    checkpoint = open_checkpoint(str(tmp_path / "c"))
    for number in (0, 1, 3, 4, 5):
        checkpoint.remember(BatchFigures(batch=number, rows_in=10**number, duration_ms=700))
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "remove", crash_before(LocalFiles, "remove", 0))
        with pytest.raises(CrashError):
            checkpoint.remember(BatchFigures(batch=6, rows_in=10**6, duration_ms=700))
    checkpoint.remember(BatchFigures(batch=7, rows_in=10**7, duration_ms=700))
    assert [batch.batch for batch in checkpoint.history()] == [5, 6, 7]
    figures = checkpoint.totals()
    assert (figures.batches, figures.rows_in, figures.busy_ms) == (7, 11_111_011, 4900)
    assert figures.took == {"1": 7}


def test_a_checkpoint_is_used_by_one_run_at_a_time(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(str(tmp_path))
    with checkpoint.locked(), pytest.raises(PipelineError, match="running already"), checkpoint.locked():
        pass
    with checkpoint.locked():
        pass


def test_a_checkpoint_elsewhere_needs_spark() -> None:
    with pytest.raises(PipelineError, match="not on this machine"):
        open_checkpoint("hdfs://far/away")


def test_the_order_stream_is_the_same_each_time_and_has_all_kinds() -> None:
    events = [event.value for event in order_events(1000)]
    assert events == [event.value for event in order_events(1000)]
    assert len(events) == 1000
    assert len(set(events)) < 1000  # some come again
    assert any(not value.endswith(b"}") for value in events)  # cut off
    assert any(b'"a lot"' in value for value in events)
    assert any(b'"amount": -1.0' in value for value in events)


def test_nothing_yet() -> None:
    assert total([]) == RunFigures()
