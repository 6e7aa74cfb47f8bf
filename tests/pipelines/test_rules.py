"""A batch that was cut off between its table and the quarantine is finished by the rules that it was begun with."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from devtools.parts import need_module
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec import read_spec
from ixion.pipelines.spec.rules import with_rules
from ixion.pipelines.spec.sinks import TableSink
from tests.pipelines.support import Lab, column

FILE = """
[source]
topics = ["t"]
include = ["offset"]
[format]
type = "json"
schema = "n INT"
[format.drift]
new = "ignore"
[[steps]]
sql = "SELECT * FROM stream"
[[expectations]]
name = "small"
check = "n < {limit}"
otherwise = "quarantine"
[[sinks]]
type = "parquet"
path = "out"
"""


def test_the_rules_of_a_file_come_back_from_the_checkpoint() -> None:
    old, new = read_spec(FILE.format(limit=2)), read_spec(FILE.format(limit=9).replace("n INT", "n BIGINT"))
    assert old.rules != new.rules
    back = with_rules(new, old.rules)
    assert (back.format, back.steps, back.expectations) == (old.format, old.steps, old.expectations)
    assert back.rules == old.rules
    assert with_rules(new, new.rules) == new
    assert replace(back, source=new.source, sinks=new.sinks).quarantine == new.quarantine


def text(limit: int, kind: str = "parquet") -> str:
    return f"""
[format]
type = "json"
schema = "n INT"
[[expectations]]
name = "small"
check = "n < {limit}"
otherwise = "quarantine"
[[sinks]]
type = "{kind}"
path = "out"
[quarantine]
type = "parquet"
path = "bad"
[lineage]
file = "events"
"""


def test_expectations_loosened_after_a_cut_lose_no_record(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ixion.pipelines.batch.write import BatchWriter

    def cut(self: BatchWriter, *_: object) -> None:
        raise PipelineError("cut off")

    lab.send({"n": 1}, {"n": 5}, {"n": 2})
    with monkeypatch.context() as patch:  # as if killed when the table is written and the quarantine is not
        patch.setattr(BatchWriter, "_write_quarantine", cut)
        with pytest.raises(PipelineError, match="cut off"):
            lab.run(text(2))
    assert column(lab.rows(), "n") == [1]
    lab.send({"n": 7}, {"n": 12})
    figures = lab.run(text(10))  # the record with 7 is judged by the file as it is now
    assert column(lab.rows(), "n") == [1, 7]
    assert column(lab.rows("bad"), "value") == [b'{"n": 12}', b'{"n": 2}', b'{"n": 5}']
    assert figures.batches == 2
    assert figures.broken == {"small": 3}  # also of the batch whose run was cut off before its figures were stored
    runs = lab.pipeline(text(10)).checkpoint().runs()
    assert [(run.outcome, run.error) for run in runs] == [("failed", "cut off"), ("complete", "")]
    events = [json.loads(line) for line in (lab.folder / "events").read_text().splitlines()]
    told = [event["eventType"] for event in events if event["eventType"] != "RUNNING"]  # that one comes after a minute
    assert told == ["START", "FAIL", "START", "COMPLETE"]
    assert events[-1]["outputs"][0]["facets"]["schema"]["fields"] == [{"name": "n", "type": "int"}]
    assert events[-1]["run"]["runId"] == runs[-1].id


def test_only_a_batch_that_some_table_has_keeps_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("pyspark")
    from ixion.pipelines.batch import rules_begun_with as rules
    from ixion.pipelines.sinks.base import Batch

    old, new = read_spec(FILE.format(limit=2)), read_spec(FILE.format(limit=9))
    batch = Batch(pipeline="p", query="q", number=3)
    stored: dict[str, str] = {}
    written: set[str] = set()

    class Table:
        def __init__(self, sink: TableSink) -> None:
            self.place = sink.path

        def has(self, asked: Batch) -> bool:
            return asked == batch and self.place in written

    class Store:
        def __init__(self, spark: object) -> None:
            assert spark is None

        def exists(self, path: str) -> bool:
            return path in stored

        def read(self, path: str) -> str:
            return stored[path]

        def write(self, path: str, text: str) -> None:
            stored[path] = text

    monkeypatch.setattr(rules, "make_writer", lambda sink, _: Table(sink))
    monkeypatch.setattr(rules, "Files", Store)
    no_spark: Any = None
    assert rules.settle_rules(old, "work", batch, no_spark) == old
    assert rules.settle_rules(new, "work", batch, no_spark) == new  # nothing is written: it may have been mended for it
    assert json.loads(stored["work/rules.json"]) == new.rules
    for sink in (new.sinks[0], new.quarantine):
        assert isinstance(sink, TableSink)
        written = {sink.path}
        assert rules.settle_rules(old, "work", batch, no_spark).expectations == new.expectations
    assert rules.begun_with(old, None, batch, no_spark) == old  # by a version that kept no rules


def test_a_batch_that_cannot_be_finished_by_its_rules_has_a_way_out() -> None:
    need_module("pyspark")
    from ixion.pipelines.batch.rules_begun_with import finishing

    with pytest.raises(PipelineError, match="no column b") as caught, finishing(7):
        raise PipelineError("no column b")
    assert "batch 7" in caught.value.hint
    assert "--new-rules" in caught.value.hint
    with pytest.raises(PipelineError) as again, finishing(7):
        raise PipelineError("the broker is away", retry=True)
    assert again.value.retry
