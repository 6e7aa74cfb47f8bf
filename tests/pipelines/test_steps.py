"""Steps and expectations, with and without memory from batch to batch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ixion.pipelines.errors import PipelineError
from tests.pipelines.crash import crash_after_a_batch, crash_before
from tests.pipelines.support import PATIENCE_S, Lab, column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT = '[[sinks]]\ntype = "parquet"\npath = "out"\n'
NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
EVENTS = '[format]\ntype = "json"\nschema = "id STRING, n INT, at TIMESTAMP"\n'


def event(name: str, n: int, minutes: int) -> dict[str, Any]:
    return {"id": name, "n": n, "at": (NOON + timedelta(minutes=minutes)).isoformat()}


def test_sql_python_and_a_join_one_after_the_other(lab: Lab) -> None:
    (lab.folder / "colours.csv").write_text("id,colour\na,red\nb,blue\n")
    (lab.folder / "my_steps.py").write_text(
        "from pyspark.sql import functions as F\n\n\n"
        "@F.udf('string')\n"
        "def shout(word):\n"
        "    return word and word.upper()\n\n\n"
        "def loud(frame):\n"
        "    return frame.withColumn('colour', shout('colour'))\n"
    )
    lab.send({"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "c", "n": 3})
    lab.run(f"""
[format]
type = "json"
schema = "id STRING, n INT"
[tables.colours]
path = "colours.csv"
format = "csv"
[[steps]]
sql = "SELECT id, n * 10 AS n FROM stream WHERE n < 3"
[[steps]]
join = {{ table = "colours", on = ["id"] }}
[[steps]]
python = "my_steps:loud"
[[steps]]
sql = "SELECT s.*, c.colour AS plain FROM stream s JOIN colours c USING (id)"
{OUT}""")
    assert sorted(lab.rows(), key=lambda row: str(row["id"])) == [
        {"id": "a", "n": 10, "colour": "RED", "plain": "red"},
        {"id": "b", "n": 20, "colour": "BLUE", "plain": "blue"},
    ]


def test_duplicates_go_late_records_are_counted_bad_ones_are_kept(lab: Lab) -> None:
    text = f"""{EVENTS}
[[expectations]]
name = "n is positive"
check = "n > 0"
otherwise = "quarantine"
[[expectations]]
name = "n is small"
check = "n < 100"
otherwise = "warn"
[[steps]]
watermark = {{ column = "at", delay = "10 minutes" }}
[[steps]]
deduplicate = ["id"]
{OUT}"""
    assert lab.pipeline(text).check(lab.spark).stateful
    lab.send(event("a", 1, 0), event("a", 1, 0), event("b", 200, 30), "broken")
    first = lab.run(text)
    assert (first.rows_in, first.rows_out, first.quarantined, first.warned) == (4, 2, 1, 1)
    # Between two runs the watermark has moved to 12:20: what is older comes too late, a duplicate is still known.
    lab.send(event("late", 1, 5), event("b", 200, 30), event("c", 1, 31), event("bad", -1, 31))
    second = lab.run(text)
    assert column(lab.rows(), "id") == ["a", "b", "c"]
    assert (second.rows_in, second.late, second.quarantined) == (4, 1, 1)
    assert column(lab.rows("out_quarantine"), "reason") == ["expectation: n is positive", "not a JSON object"]


def test_a_window_is_written_when_it_is_over(lab: Lab) -> None:
    text = f"""{EVENTS}
[[steps]]
watermark = {{ column = "at", delay = "1 minute" }}
[[steps]]
window = {{ column = "at", size = "10 minutes", by = ["id"], aggregates = {{ sum = "sum(n)", events = "count(*)" }} }}
{OUT}"""
    lab.send(event("a", 1, 1), event("a", 2, 2), event("b", 5, 3), event("a", 9, 15))
    lab.run(text)
    assert sorted((row["id"], row["sum"], row["events"]) for row in lab.rows()) == [("a", 3, 2), ("b", 5, 1)]
    assert {(row["start"], row["end"]) for row in lab.rows()} == {(NOON, NOON + timedelta(minutes=10))}
    lab.send(event("c", 1, 60))
    lab.run(text)
    assert ("a", 9, 1) in [(row["id"], row["sum"], row["events"]) for row in lab.rows()]


def test_sliding_windows_count_a_record_in_each_that_holds_it(lab: Lab) -> None:
    lab.send(event("a", 1, 1), event("a", 2, 6), event("b", 100, 60))
    lab.run(f"""{EVENTS}
[[steps]]
watermark = {{ column = "at", delay = "1 minute" }}
[[steps]]
window = {{ column = "at", size = "10 minutes", slide = "5 minutes", aggregates = {{ sum = "sum(n)" }} }}
{OUT}""")
    assert sorted((row["start"] - NOON, row["sum"]) for row in lab.rows()) == [
        (timedelta(minutes=-5), 1),
        (timedelta(0), 3),
        (timedelta(minutes=5), 2),
    ]


def test_a_table_that_is_joined_may_change_from_batch_to_batch(lab: Lab) -> None:
    """In the middle of a run, as each batch reads it anew."""
    import threading

    from ixion.pipelines.batch.metrics import BatchFigures
    from ixion.pipelines.run.progress import Progress

    table = lab.folder / "colours.csv"
    table.write_text("id,colour\na,red\n")
    text = f"""
[format]
type = "json"
schema = "id STRING"
[tables.colours]
path = "colours.csv"
format = "csv"
[[steps]]
join = {{ table = "colours", on = ["id"] }}
{OUT}"""
    held: list[Progress] = []

    def report(batch: BatchFigures) -> None:
        if batch.rows_in and batch.batch == 0:
            table.write_text("id,colour\na,blue\nb,green\n")
            lab.send({"id": "a"}, {"id": "b"})
        elif batch.rows_in:
            held[0].stop()

    lab.send({"id": "a"}, {"id": "b"})
    run = lab.pipeline(text).run
    thread = threading.Thread(
        target=lambda: run(lab.spark, follow=True, every_ms=100, report=report, started=held.append)
    )
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    rows = sorted((row["id"], row["colour"] or "") for row in lab.rows())
    assert rows == [("a", "blue"), ("a", "red"), ("b", ""), ("b", "green")]


def test_expectations_warn_drop_and_quarantine(lab: Lab) -> None:
    sent = {"fine": 1, "odd": 50, "gone": -1, "kept": 1000, "sum": 7}
    lab.send(*({"id": name, "n": n} for name, n in sent.items()))
    figures = lab.run(f"""
[format]
type = "json"
schema = "id STRING, n INT"
[[expectations]]
check = "n < 10"
otherwise = "warn"
[[expectations]]
check = "n > 0"
otherwise = "drop"
[[expectations]]
name = "not huge"
check = "n < 100"
otherwise = "quarantine"
[[steps]]
sql = "SELECT *, n * 2 AS twice FROM stream"
[[expectations]]
name = "not fourteen"
check = "twice <> 14"
on = "result"
otherwise = "quarantine"
{OUT}""")
    assert column(lab.rows(), "id") == ["fine", "odd"]
    assert (figures.rows_in, figures.rows_out, figures.quarantined, figures.dropped) == (5, 2, 2, 1)
    assert figures.warned == 1
    record, result = sorted(lab.rows("out_quarantine"), key=lambda row: row["topic"] is None)
    assert (record["offset"], record["reason"]) == (3, "expectation: not huge")
    assert (result["value"], result["reason"]) == (b'{"id":"sum","n":7,"twice":14}', "expectation: not fourteen")


def test_an_expectation_can_stop_the_pipeline_before_anything_is_written(lab: Lab) -> None:
    lab.send({"n": 1}, {"n": -1})
    with pytest.raises(PipelineError, match=f"'n > 0' is not met at {lab.topic}-0 offset 1") as caught:
        lab.run(
            f'[format]\ntype = "json"\nschema = "n INT"\n[[expectations]]\ncheck = "n > 0"\notherwise = "fail"\n{OUT}'
        )
    assert not caught.value.retry
    assert lab.rows() == []


def test_the_plan_grows_with_the_number_of_expectations(spark: SparkSession) -> None:
    from ixion.pipelines.batch.expectations import expect, expect_result
    from ixion.pipelines.spec.pipeline import Expectation

    rows = expect_result(spark.range(3), [])

    def size(count: int) -> int:
        ways = ("quarantine", "drop", "warn")
        asked = [Expectation(name=f"e{n}", check=f"id <> {n}", otherwise=ways[n % 3]) for n in range(count)]
        return len(expect(rows, asked)._jdf.queryExecution().optimizedPlan().toString())

    few, more, many = size(3), size(6), size(12)
    assert many - more < 3 * (more - few)


LUCK = "cast(reflect('java.lang.Math', 'random') AS double) < 0.5"


@pytest.mark.parametrize("on", ["record", "result"])
def test_a_record_is_judged_once_even_if_the_judgement_depends_on_chance(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    """Also if the run ends when the first table is written, and the batch is taken up again."""
    from ixion.pipelines.batch.write import BatchWriter

    text = f"""
[format]
type = "json"
schema = "n INT"
[[expectations]]
check = "{LUCK}"
on = "{on}"
otherwise = "quarantine"
{OUT}[[sinks]]
type = "parquet"
path = "other"
"""
    lab.send(*({"n": n} for n in range(40)))
    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_write_quarantine", crash_before(BatchWriter, "_write_quarantine", 0))
        with pytest.raises(PipelineError):
            lab.run(text)
    lab.run(text)
    lab.send(*({"n": n} for n in range(40, 80)))
    figures = lab.run(text)
    assert (figures.rows_in, figures.rows_out + figures.quarantined) == (40, 40)
    kept = column(lab.rows(), "n")
    assert column(lab.rows("other"), "n") == kept
    left_out = [json.loads(row["value"])["n"] for row in lab.rows("out_quarantine")]
    assert sorted([*kept, *left_out]) == list(range(80))
    assert 10 < len(kept) < 70
    assert not list(lab.folder.glob(".ixion/p/ixion/kept/*"))  # nothing is left lying about


def test_which_rows_might_change_from_one_pass_to_the_next(spark: SparkSession, tmp_path: Path) -> None:
    from ixion.pipelines.batch.stable_rows import may_change

    (tmp_path / "colours.csv").write_text("id,colour\n1,red\n")
    spark.read.csv(str(tmp_path / "colours.csv"), header=True).createOrReplaceTempView("colours")
    spark.range(3).createOrReplaceTempView("numbers")
    spark.udf.register("mine", lambda n: n)
    changing = (
        "now()",
        "current_date()",
        "unix_timestamp()",
        "rand()",
        "uuid()",
        "mine(id)",
        "(SELECT 1 FROM colours)",
    )
    for expression in changing:
        assert may_change(spark.sql(f"SELECT *, {expression} AS x FROM numbers"), clock=True), expression
    for expression in ("id + 1", "upper('now()')", "date'2026-01-31'"):
        assert not may_change(spark.sql(f"SELECT *, {expression} AS x FROM numbers"), clock=True), expression
    assert not may_change(spark.sql("SELECT now() FROM numbers"), clock=False)


def test_a_batch_that_does_not_add_up_fails(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ixion.pipelines.formats.parse import quarantined

    monkeypatch.setattr(
        "ixion.pipelines.batch.write.quarantined", lambda frame: quarantined(frame).where("offset <> 1")
    )
    monkeypatch.setattr("ixion.pipelines.batch.bad_records.MOST", 1)
    lab.send({"n": 1}, "bad", "worse")
    with pytest.raises(PipelineError, match="batch 0 does not add up: 2 records are bad, 1 are in quarantine"):
        lab.run(f'[format]\ntype = "json"\nschema = "n INT"\n{OUT}')


def test_steps_with_memory_outlive_a_crash_after_the_batch_was_written(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{EVENTS}[[steps]]\ndeduplicate = ["id"]\n{OUT}'
    lab.send(event("a", 1, 0), event("a", 2, 0))
    with crash_after_a_batch(monkeypatch):
        lab.run(text)
    lab.run(text)
    lab.send(event("a", 3, 0), event("b", 1, 0))
    lab.run(text)
    assert column(lab.rows(), "id") == ["a", "b"]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ('sql = "SELECT amout FROM stream"', "there is no column amout; did you mean 'amount'?"),
        ('sql = "SELECT * FROM straem"', "SQL: there is no table straem"),
        ('sql = "SELEC * FROM stream"', "a SQL step is a query"),
        ('deduplicate = ["ordr"]', "deduplicate: there is no column ordr; did you mean 'order'?"),
        ('python = "no_such_module:f"', "cannot be imported"),
        ('python = "json:lods"', "json has no function lods; did you mean 'loads'?"),
    ],
)
def test_mistakes_are_found_by_check(lab: Lab, steps: str, said: str) -> None:
    text = f'[format]\ntype = "json"\nschema = "order STRING, amount INT"\n[[steps]]\n{steps}\n{OUT}'
    with pytest.raises(PipelineError) as caught:
        lab.pipeline(text).check(lab.spark)
    assert said in str(caught.value)
    assert "\tat " not in str(caught.value) + caught.value.hint  # no Java stack trace


def test_a_mistake_in_an_expectation_or_partition_is_found_by_check(lab: Lab) -> None:
    head = '[format]\ntype = "json"\nschema = "amount INT"\n'
    broken = head + f'[[expectations]]\ncheck = "amont > 0"\notherwise = "warn"\non = "record"\n{OUT}'
    with pytest.raises(PipelineError, match=r"no column amont; did you mean 'amount'\?"):
        lab.pipeline(broken).check(lab.spark)
    with pytest.raises(PipelineError, match=r"partition_by of .*no column amont; did you mean 'amount'\?"):
        lab.pipeline(head + OUT + 'partition_by = ["amont"]\n').check(lab.spark)
    clustered = OUT.replace("parquet", "delta") + '[sinks.upkeep]\ncluster_by = ["Amount", "amont"]\n'
    with pytest.raises(PipelineError, match=r"cluster_by of .*no column amont"):
        lab.pipeline(head + clustered).check(lab.spark)
    ordered = OUT.replace("parquet", "iceberg") + 'sort_by = ["amount", "`amont` DESC"]\n'
    with pytest.raises(PipelineError, match=r"sort_by of .*no column amont"):
        lab.pipeline(head + ordered).check(lab.spark)
