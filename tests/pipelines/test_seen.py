"""Runs as they are kept and reported, and as OpenLineage's events tell them; all without Spark."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ixion.cli.app import execute
from ixion.cli.pipeline.bar import live_line, span
from ixion.pipelines.batch.metrics import BatchFigures, prometheus, total
from ixion.pipelines.checkpoint.checkpoint import open_checkpoint
from ixion.pipelines.checkpoint.run_records import KEPT, RunLog, RunRecord
from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.run.lineage import RunLineage, dataset
from ixion.pipelines.run.lineage_sending import EventSender
from ixion.pipelines.run.report import report_html
from ixion.pipelines.spec import read_spec
from ixion.pipelines.spec.lineage import LineageSpec
from ixion.pipelines.spec.sinks import TableSink

FILE = """
name = "shop"
checkpoint = "c"
[source]
topics = ["orders"]
bootstrap = "one:9092,two:9092"
[format]
type = "json"
schema = "n INT"
[[expectations]]
name = "small"
check = "n < 10"
otherwise = "quarantine"
[[expectations]]
name = "not <b>null"
check = "n IS NOT NULL"
otherwise = "fail"
[[sinks]]
type = "delta"
path = "s3a://lake/shop/orders"
"""
BAD = BatchFigures(batch=0, rows_in=10, rows_out=8, quarantined=2, broken={"small": 2}, duration_ms=700)
GOOD = BatchFigures(batch=1, rows_in=5, rows_out=5, broken={"small": 0}, duration_ms=40_000)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 31, 8, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def run(keepers: list[Any], *batches: BatchFigures, id: str = "r1", clock: Clock | None = None) -> RunLog:  # noqa: A002
    with RunLog(id, keepers, str, clock or Clock()) as log:
        for batch in batches:
            log.add(batch)
    return log


def test_a_run_is_kept_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(str(tmp_path / "c"))
    seen: list[RunRecord] = []
    run([checkpoint.remember_run, seen.append], BAD, GOOD)
    assert [record.outcome for record in seen] == ["running", "complete"]
    assert checkpoint.runs() == seen[1:]
    assert checkpoint.runs()[0].figures.broken == {"small": 2}
    with pytest.raises(PipelineError), RunLog("r2", [checkpoint.remember_run], str, Clock()):
        raise PipelineError("the disk is full")
    assert [(one.outcome, one.error) for one in checkpoint.runs()] == [
        ("failed", "the disk is full")
    ]  # began as r1 did
    clock = Clock()
    for number in range(KEPT + 3):
        run([checkpoint.remember_run], id=f"n{number}", clock=clock)
    assert [one.id for one in checkpoint.runs()][-1] == f"n{KEPT + 2}"
    assert len(checkpoint.runs()) == KEPT


def test_what_cannot_be_kept_does_not_hide_why_a_run_failed() -> None:
    def keep(record: RunRecord) -> None:
        if record.ended:
            raise OSError("no space left")

    with pytest.raises(PipelineError, match="the broker is gone"), RunLog("r", [keep], str, Clock()):
        raise PipelineError("the broker is gone")
    with pytest.raises(OSError, match="no space left"), RunLog("r", [keep], str, Clock()):
        pass


def test_a_report_has_each_expectation(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text(FILE)
    checkpoint = open_checkpoint(str(tmp_path / "c"))

    def said(*arguments: str) -> str:
        with redirect_stdout(StringIO()) as out:
            execute(["pipeline", "report", str(file), *arguments])
        return out.getvalue()

    for day, (name, batch) in enumerate({"a1": BAD, "b2": GOOD}.items(), start=1):
        checkpoint.remember_run(RunRecord(id=name, began=f"2026-01-0{day}", figures=total([batch])))
        checkpoint.remember(replace(batch, run=name))
    first, last = said("--run", "a"), said()
    assert "NOT MET     small: n < 10 · 2 rows do not meet it (quarantine)\n" in first
    assert "batch 0 · 10 rows in" in first
    assert "batch 1" not in first
    assert "met         small: n < 10 · 0 rows do not meet it\n" in last
    assert json.loads(said("--run", "a1", "--json"))["expectations"][0]["broken"] == 2
    assert [line.split()[0] for line in said("--list").splitlines()] == ["a1", "b2"]
    said("--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert "not &lt;b&gt;null" in page
    assert "<b>" not in page


def test_counts_of_expectations_and_the_time_of_batches_are_metrics() -> None:
    text = prometheus('a"b', total([BAD, GOOD]))
    assert 'ixion_pipeline_expectation_broken_total{pipeline="a\\"b",expectation="small"} 2\n' in text
    buckets = [line for line in text.splitlines() if "batch_seconds_bucket" in line]
    assert [int(line.split()[-1]) for line in buckets] == [0, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    assert 'ixion_pipeline_batch_seconds_sum{pipeline="a\\"b"} 40.7\n' in text


def test_the_events_of_a_run() -> None:
    events: list[dict[str, Any]] = []
    clock = Clock()
    spec = read_spec(FILE)
    lineage = RunLineage(spec, events.append, namespace="prod", spark="4.0.0", catalogs={}, now=clock)
    with RunLog("5b7c1f6e-0000-4000-8000-000000000000", [lineage.keep], str, clock) as log:
        lineage.columns = [("n", "int")]
        for _ in range(3):  # a minute after the last event at most
            log.add(BAD)
            lineage.go_on(log.record)
            clock.now += timedelta(seconds=40)
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "COMPLETE"]
    last = events[-1]
    assert last["job"]["namespace"] == "prod"
    assert (last["job"]["name"], last["run"]["runId"]) == ("shop", log.record.id)
    (topic,) = last["inputs"]
    assert (topic["namespace"], topic["name"]) == ("kafka://one:9092", "orders")
    assert topic["inputFacets"]["inputStatistics"]["rowCount"] == 30
    assert topic["inputFacets"]["dataQualityAssertions"]["assertions"][0] == {"assertion": "small", "success": False}
    table, quarantine = last["outputs"]
    assert (table["namespace"], table["name"]) == ("s3://lake", "shop/orders")
    assert table["facets"]["schema"]["fields"] == [{"name": "n", "type": "int"}]
    assert (table["outputFacets"]["outputStatistics"]["rowCount"], quarantine["name"]) == (24, "shop/orders_quarantine")
    with pytest.raises(PipelineError), RunLog("x", [lineage.keep], str, clock):
        raise PipelineError("no")
    assert (events[-1]["eventType"], events[-1]["run"]["facets"]["errorMessage"]["message"]) == ("FAIL", "no")


def test_how_datasets_are_named() -> None:
    assert dataset(TableSink(format="parquet", path="/lake/a"), {}) == {"namespace": "file", "name": "/lake/a"}
    hdfs = TableSink(format="parquet", path="hdfs://nn:8020/lake/a")
    assert dataset(hdfs, {}) == {"namespace": "hdfs://nn:8020", "name": "/lake/a"}
    iceberg = TableSink(format="iceberg", table="shop.db.a")
    assert dataset(iceberg, {"shop": "https://rest"}) == {"namespace": "https://rest", "name": "db.a"}


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """Takes the first event, and refuses the others."""
    got: list[tuple[str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(201 if len(got) == 1 else 500)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listener.server_address[1]}", got
    listener.shutdown()
    listener.server_close()
    thread.join()


def test_events_are_sent_and_a_server_that_refuses_stops_nothing(
    server: tuple[str, list[tuple[str, str, Any]]], tmp_path: Path
) -> None:
    url, got = server
    said: list[str] = []
    with EventSender(LineageSpec(url=url, api_key="secret"), said.append) as sender:
        for number in range(3):
            sender.send({"number": number})
    assert got == [("/api/v1/lineage", "Bearer secret", {"number": number}) for number in range(3)]
    assert sender.dropped == 2
    assert len(said) == 1
    assert "lineage events are not accepted by http://127.0.0.1" in said[0]
    with EventSender(LineageSpec(file=str(tmp_path / "a" / "events")), said.append) as to_file:
        to_file.send({"number": 1})
        to_file.send({"number": 2})
    lines = (tmp_path / "a" / "events").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2]


def test_where_events_go_is_said_by_the_file_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_spec(FILE).lineage is None
    monkeypatch.setenv("OPENLINEAGE_URL", "http://marquez:5000")
    monkeypatch.setenv("KEY", "hidden")
    found = read_spec(FILE).lineage
    assert found is not None
    assert (found.url, found.endpoint, found.namespace) == ("http://marquez:5000", "api/v1/lineage", "ixion")
    own = read_spec(FILE + '[lineage]\nurl = "https://other"\napi_key = "${KEY}"\nnamespace = "n"\n').lineage
    assert own is not None
    assert (own.url, own.api_key, own.namespace) == ("https://other", "hidden", "n")
    assert "hidden" not in repr(own)
    for wrong, message in (("", "needs either a url or a file"), ('url = "other"\n', "must begin with http")):
        with pytest.raises(SpecError, match=message):
            read_spec(f"{FILE}[lineage]\n{wrong}")


def test_the_live_line_shows_how_much_is_read_and_when_it_is_done() -> None:
    first = BatchFigures(batch=0, rows_in=300, duration_ms=1000, rows_per_s=300.0, lag=700)
    assert live_line(total([first]), first, follow=False) == (
        "━━━━━━╺━━━━━━━━━━━━━ 30 % · 300 rows in · 300 rows/s · lag 700 · about 2 s left"
    )
    last = BatchFigures(batch=1, rows_in=700, duration_ms=1000, rows_per_s=700.0)
    done = live_line(total([first, last]), last, follow=False)
    assert done == "━━━━━━━━━━━━━━━━━━━━ 100 % · 1,000 rows in · 700 rows/s · lag 0"
    assert live_line(total([first]), first, follow=True) == "300 rows in · 300 rows/s · lag 700"
    assert live_line(total([]), BatchFigures(batch=0), follow=False) == "0 rows in · 0 rows/s · lag 0"
    assert [span(seconds) for seconds in (0.2, 119, 120, 7140, 10000)] == ["1 s", "119 s", "2 min", "119 min", "3 h"]


def test_a_page_plots_what_the_batches_had() -> None:
    batches = [
        BatchFigures(batch=0, rows_in=200, quarantined=50, duration_ms=4000, lag=30),
        BatchFigures(batch=1, rows_in=100, rows_out=100, duration_ms=1000),
    ]
    record = RunRecord(id="x", began="2026-01-31T08:00:00+00:00")
    page = report_html(read_spec(FILE), record, batches)
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert captions == [
        "rows read, and left out; at most 200",
        "seconds; at most 4.0",
        "records behind the end of the topics (lag); at most 30",
        "records in quarantine; at most 50",
    ]
    rows, seconds, lag, quarantined = re.findall("<figure>(.*?)<figcaption>", page)
    assert re.findall(r"height=([\d.]+) fill=#4a7", rows) == ["100.0", "50.0"]
    assert re.findall(r"height=([\d.]+) fill=#c43", rows) == ["25.0"]
    assert re.findall(r"height=([\d.]+) fill=#4a7", seconds) == ["100.0", "25.0"]
    assert re.findall(r"height=([\d.]+) fill=#4a7", lag) == ["100.0", "0.0"]
    assert re.findall(r"height=([\d.]+) fill=#4a7", quarantined) == ["100.0", "0.0"]


def test_a_page_of_a_run_without_batches_can_be_read() -> None:
    record = RunRecord(
        id="x", began="2026-01-31T08:00:00+00:00", ended="2026-01-31T08:00:02+00:00", outcome="failed", error="<no>"
    )
    page = report_html(read_spec(FILE), record, [])
    assert "&lt;no&gt;" in page
    assert "after 2.0 s" in page
