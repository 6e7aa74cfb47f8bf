"""Every sink gets every row once, also when a batch comes again after it was cut off at any moment."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.pipelines.errors import PipelineError
from tests.pipelines.crash import crash_after_a_batch, crash_before
from tests.pipelines.support import Lab, column, parquet_rows
from tests.spark_source.sinking import committed

FORMAT = '[format]\ntype = "json"\nschema = "n INT, half INT"\n'
PARQUET = '[[sinks]]\ntype = "parquet"\npath = "out"\npartition_by = ["half"]\n'
DELTA = '[[sinks]]\ntype = "delta"\npath = "delta"\npartition_by = ["half"]\n'
ICEBERG = '[[sinks]]\ntype = "iceberg"\npath = "ice"\npartition_by = ["half"]\n'


def sent(count: int, first: int = 0) -> list[Any]:
    return [{"n": n, "half": n % 2} for n in range(first, first + count)]


def iceberg_numbers(lab: Lab) -> list[int]:
    return sorted(row.n for row in lab.spark.read.format("iceberg").load(str(lab.folder / "ice")).collect())


def delta_numbers(lab: Lab) -> list[int]:
    return sorted(row.n for row in lab.spark.read.format("delta").load(str(lab.folder / "delta")).collect())


def test_all_sinks_in_one_pipeline(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    from ixion.pipelines import read_topic

    target = f"{lab.topic}-clean"
    topic = f'[[sinks]]\ntype = "topic"\ntopic = "{target}"\nkey = "n"\n[[sinks]]\ntype = "console"\nrows = 2\n'
    lab.send(*sent(10), "broken")
    figures = lab.run(FORMAT + PARQUET + DELTA + ICEBERG + topic)
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (11, 10, 1)
    numbers = list(range(10))
    assert column(lab.rows(), "n") == numbers
    assert sorted(path.name for path in (lab.folder / "out").iterdir()) == ["_ixion", "half=0", "half=1"]
    assert delta_numbers(lab) == numbers
    assert iceberg_numbers(lab) == numbers
    clean = read_topic(lab.spark, target, bootstrap=lab.bootstrap, streaming=False)
    assert sorted(int(row.key) for row in clean.collect()) == numbers
    assert "only showing top 2 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "times"),
    [
        pytest.param("write_new", 0, id="before-the-list"),
        pytest.param("rename", 1, id="before-the-first-move"),
        pytest.param("rename", 2, id="between-two-moves"),
        pytest.param("remove", 1, id="before-cleaning-up"),
    ],
)
def test_parquet_at_every_moment(lab: Lab, monkeypatch: pytest.MonkeyPatch, method: str, times: int) -> None:
    """Two moves a batch (half=0 and half=1); the first rename of a batch is that of its list."""
    from ixion.pipelines.spark.hadoop_files import Files

    lab.send(*sent(10))
    with monkeypatch.context() as patch:
        patch.setattr(Files, method, crash_before(Files, method, times))
        with pytest.raises(PipelineError):
            lab.run(FORMAT + PARQUET)
    visible = column(lab.rows(), "n")
    assert len(visible) == len(set(visible))  # no row twice, at any moment
    lab.send(*sent(5, first=10))
    lab.run(FORMAT + PARQUET)
    assert column(lab.rows(), "n") == list(range(15))
    assert not list(lab.folder.glob(".out.staging/p/*/*"))


def test_written_but_not_yet_noted_by_spark(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is in the tables, and the process ends before Spark's checkpoint knows."""
    log = lab.folder / "delta" / "_delta_log"  # left by a first write on a disk that was full
    log.mkdir(parents=True)
    (log / ".00000000000000000000.json.1.tmp").touch()
    text = FORMAT + PARQUET + DELTA + ICEBERG
    lab.run(text)  # the session has seen the tables before
    lab.send(*sent(10), "broken")
    with crash_after_a_batch(monkeypatch):
        lab.run(text)
    lab.send(*sent(5, first=10))
    assert (lab.run(text).batches, len(lab.rows("out_quarantine"))) == (2, 1)
    for numbers in (column(lab.rows(), "n"), delta_numbers(lab), iceberg_numbers(lab)):
        assert numbers == list(range(15))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_bad_records_of_a_batch_that_comes_again_are_in_quarantine_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    text = FORMAT + {"delta": DELTA, "iceberg": ICEBERG}[kind]
    lab.send(*sent(2), "broken")
    with crash_after_a_batch(monkeypatch):
        lab.run(text)
    assert lab.run(text).batches == 1
    place = {"delta": "delta", "iceberg": "ice"}[kind]
    assert lab.spark.read.format(kind).load(str(lab.folder / f"{place}_quarantine")).count() == 1


def test_a_repeated_batch_in_a_topic_can_be_recognised(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least once: the rows are there twice, and `once` leaves one of each."""
    from ixion.pipelines import once, read_topic

    target = f"{lab.topic}-clean"
    text = f'{FORMAT}[[sinks]]\ntype = "topic"\ntopic = "{target}"\nkey = "half"\n'
    lab.send(*sent(10), *sent(1))  # row 0 is there twice, and is to stay there twice
    with crash_after_a_batch(monkeypatch):
        lab.run(text)
    lab.run(text)
    clean = read_topic(lab.spark, target, bootstrap=lab.bootstrap, streaming=False)
    assert clean.count() == 22
    seen = [row.value.decode() for row in clean.transform(once).orderBy("partition", "offset").collect()]
    expected = [f'{{"n":{n},"half":{n % 2}}}' for n in range(10)] + ['{"n":0,"half":0}']
    assert sorted(seen) == sorted(expected)
    for half in (0, 1):  # the order within a key is that of the source
        of_key = [row for row in seen if row.endswith(f'"half":{half}}}')]
        assert of_key == [row for row in expected if row.endswith(f'"half":{half}}}')]


def test_a_repeated_batch_in_a_topic_is_there_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    target = f"{lab.topic}-clean"
    text = f'{FORMAT}[[sinks]]\ntype = "topic"\ntopic = "{target}"\nkey = "half"\nexactly_once = true\n' + PARQUET
    lab.send(*sent(10), *sent(1))  # row 0 is there twice, and is to stay there twice
    with crash_after_a_batch(monkeypatch):
        lab.run(text)
    lab.run(text)
    lab.send(*sent(2))
    lab.run(text)
    expected = [f'{{"n":{n},"half":{n % 2}}}' for n in (*range(10), 0, 0, 1)]
    assert committed(lab.bootstrap, target) == sorted(expected)
    assert len(lab.rows()) == 13


def test_two_pipelines_share_a_topic_and_a_table(lab: Lab) -> None:
    lab.send(*sent(6))
    for name, condition in (("even", "half = 0"), ("odd", "half = 1")):
        step = f'[[steps]]\nsql = "SELECT * FROM stream WHERE {condition}"\n'
        figures = lab.run(FORMAT + step + PARQUET, name=name)
        assert (figures.rows_in, figures.rows_out) == (6, 3)
    assert column(lab.rows(), "n") == list(range(6))


def test_a_lost_checkpoint_does_not_write_everything_again(lab: Lab) -> None:
    sinks = {"parquet": PARQUET, "delta": DELTA, "iceberg": ICEBERG}
    lab.send(*sent(3))
    lab.run(FORMAT + "".join(sinks.values()))
    (lab.folder / ".ixion").rename(lab.folder / "lost")
    for kind, sink in sinks.items():
        with pytest.raises(PipelineError, match=rf"{kind} .* has rows of this pipeline, but the checkpoint .* is new"):
            lab.run(FORMAT + sink)
    lab.pipeline(FORMAT + "".join(sinks.values())).run(lab.spark, again=True)
    for numbers in (column(lab.rows(), "n"), delta_numbers(lab), iceberg_numbers(lab)):
        assert numbers == [0, 0, 1, 1, 2, 2]


def expire_snapshots(lab: Lab) -> None:
    """As anybody may: add a row, then forget all snapshots but the newest."""
    from ixion.pipelines.sinks.iceberg import iceberg_name
    from ixion.pipelines.spec.sinks import TableSink

    name = iceberg_name(TableSink(format="iceberg", path=str(lab.folder / "ice")), lab.spark)
    lab.spark.sql(f"INSERT INTO {name} VALUES (-1, 1)")
    catalog, _, table = name.partition(".")
    moment = "TIMESTAMP '2100-01-01 00:00:00'"
    lab.spark.sql(f"CALL {catalog}.system.expire_snapshots(table => '{table}', older_than => {moment})")
    assert lab.spark.table(f"{name}.snapshots").count() == 1


def test_iceberg_knows_its_batches_when_the_snapshots_are_gone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    text = FORMAT + ICEBERG
    lab.send(*sent(4))
    with crash_after_a_batch(monkeypatch):
        lab.run(text)
    expire_snapshots(lab)
    assert lab.run(text).batches == 1  # the batch comes again
    assert iceberg_numbers(lab) == [-1, *range(4)]
    expire_snapshots(lab)
    (lab.folder / ".ixion").rename(lab.folder / "lost")
    with pytest.raises(PipelineError, match=r"iceberg .* has rows of this pipeline, but the checkpoint .* is new"):
        lab.run(text)


def test_the_same_batch_is_written_to_iceberg_once(lab: Lab) -> None:
    from ixion.pipelines import write_table

    rows = lab.spark.createDataFrame([(n, n % 2) for n in range(10)], "n INT, half INT")
    for _ in range(2):
        rows.transform(write_table, "iceberg", str(lab.folder / "ice"), job="mine", query="1", batch=0)
        expire_snapshots(lab)
    assert [n for n in iceberg_numbers(lab) if n >= 0] == list(range(10))


def test_an_iceberg_table_of_a_catalog(lab: Lab) -> None:
    catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": f"{lab.folder}/warehouse"}
    for name, value in catalog.items():
        lab.spark.conf.set(f"spark.sql.catalog.shop{name}", value)
    upkeep = "[sinks.upkeep]\ncompact_below_mb = 1\n"
    text = f'{FORMAT}[[sinks]]\ntype = "iceberg"\ntable = "shop.db.or-ders"\npartition_by = ["half"]\n{upkeep}'
    lab.send(*sent(4), "broken")
    lab.run(text)
    lab.send(*sent(4, first=4))
    lab.run(text)
    lab.spark.sql("REFRESH TABLE shop.db.`or-ders`")
    assert sorted(row.n for row in lab.spark.table("shop.db.`or-ders`").collect()) == list(range(8))
    assert lab.spark.table("shop.db.`or-ders`.files").count() == 2  # joined, one a partition
    assert lab.spark.table("shop.db.`or-ders_quarantine`").count() == 1
    (lab.folder / ".ixion").rename(lab.folder / "lost")
    with pytest.raises(PipelineError, match=r"iceberg shop.db.or-ders has rows of this pipeline, but the checkpoint"):
        lab.run(text)


def test_the_functions_work_in_a_job_of_ones_own(lab: Lab) -> None:
    from ixion.pipelines import accepted, parse, quarantine, read_topic, write_table

    lab.send(*sent(4), "broken")
    parsed = read_topic(lab.spark, lab.topic, bootstrap=lab.bootstrap, streaming=False).transform(
        parse, "json", "n INT, half INT", include=["offset"]
    )
    path = str(lab.folder / "mine")
    for _ in range(2):
        parsed.transform(accepted).transform(write_table, "parquet", path, job="mine", query="1", batch=0)
    assert column(parquet_rows(lab.folder / "mine"), "kafka_offset") == [0, 1, 2, 3]
    assert [(row.offset, bytes(row.value)) for row in parsed.transform(quarantine).collect()] == [(4, b"broken")]
