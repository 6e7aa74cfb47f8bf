"""A table or its checkpoint was restored from a backup or deleted: nothing is lost or doubled in silence."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ixion.pipelines.batch.metrics import RunFigures
from ixion.pipelines.errors import PipelineError
from tests.pipelines.support import Lab, column, parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("parquet", "delta", "iceberg")
FORMAT = '[format]\ntype = "json"\nschema = "n INT"\n'


def text(kind: str, more: str = "") -> str:
    return f'{FORMAT}[[sinks]]\ntype = "{kind}"\npath = "out"\n{more}'


def numbers(lab: Lab, kind: str) -> list[Any]:
    if kind == "parquet":
        return column(parquet_rows(lab.folder / "out"), "n")
    if kind == "delta":
        rows = lab.spark.read.format("delta").load(str(lab.folder / "out")).collect()
    else:
        from ixion.pipelines.sinks.iceberg import iceberg_name, refresh
        from ixion.pipelines.spec.sinks import TableSink

        name = iceberg_name(TableSink(format="iceberg", path=str(lab.folder / "out")), lab.spark)
        refresh(name, lab.spark)
        rows = lab.spark.table(name).collect()
    return sorted(row.n for row in rows)


def send(lab: Lab, first: int, end: int) -> None:
    lab.send(*({"n": n} for n in range(first, end)))


def run(lab: Lab, file: str, **how: Any) -> RunFigures:
    return lab.pipeline(file).run(lab.spark, **how)


def copy(folder: Path, name: str, to: str) -> None:
    shutil.rmtree(folder / to, ignore_errors=True)
    shutil.copytree(folder / name, folder / to)


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_checkpoint_is_noticed(lab: Lab, kind: str) -> None:
    file = text(kind)
    send(lab, 0, 20)
    run(lab, file)
    copy(lab.folder, ".ixion", "backup")
    send(lab, 20, 30)
    run(lab, file)
    copy(lab.folder, "backup", ".ixion")
    send(lab, 30, 50)
    with pytest.raises(PipelineError, match=f"has offsets 20 to 29 of {lab.topic}-0, which the checkpoint") as caught:
        run(lab, file)
    start = f"{{ {lab.topic} = {{ 0 = 30, 1 = 0 }} }}"
    assert f"[source] start = {start}" in caught.value.hint
    shutil.rmtree(lab.folder / ".ixion")
    lab.pipeline(file, source=f"start = {start}").run(lab.spark, again=True)
    assert numbers(lab, kind) == list(range(50))


@pytest.mark.parametrize("kind", KINDS)
def test_again_writes_the_rows_behind_a_restored_checkpoint_again(lab: Lab, kind: str) -> None:
    """The numbers of its batches are those that the table has: they must not be taken for the same batches."""
    file, warned = text(kind), list[str]()
    send(lab, 0, 20)
    run(lab, file)
    copy(lab.folder, ".ixion", "backup")
    for first in (20, 25):
        send(lab, first, first + 5)
        run(lab, file)
    copy(lab.folder, "backup", ".ixion")
    send(lab, 30, 50)
    run(lab, file, again=True, warn=warned.append)
    assert "going on, because of --again" in warned[0]
    send(lab, 50, 52)
    run(lab, file, warn=warned.append)
    assert len(warned) == 1
    assert numbers(lab, kind) == sorted([*range(52), *range(20, 30)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_table_is_noticed_and_filled_again(lab: Lab, kind: str) -> None:
    file = text(kind)
    send(lab, 0, 20)
    run(lab, file)
    shutil.rmtree(lab.folder / "out")
    send(lab, 20, 30)
    with pytest.raises(PipelineError, match=f"lacks offsets 0 to 19 of {lab.topic}-0") as caught:
        run(lab, file)
    assert "ixion pipeline backfill FILE --missing" in caught.value.hint
    done = lab.pipeline(file).mend(lab.spark)
    assert done.figures.rows_in == 20
    run(lab, file)
    assert numbers(lab, kind) == list(range(30))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_restored_from_a_backup_is_noticed_and_filled_again(lab: Lab, kind: str) -> None:
    """Its quarantine was not restored, and must not get the bad record twice."""
    file, source = text(kind), "max_records_per_batch = 7"
    send(lab, 0, 20)
    lab.run(file, source=source)
    copy(lab.folder, "out", "backup")
    lab.send("broken")
    send(lab, 20, 39)
    lab.run(file, source=source)
    copy(lab.folder, "backup", "out")
    send(lab, 39, 60)
    with pytest.raises(PipelineError, match=f"lacks offsets 20 to 39 of {lab.topic}-0"):
        lab.run(file, source=source)
    pipeline = lab.pipeline(file, source=source)
    assert [(one.first, one.end) for one in pipeline.mend(lab.spark, dry=True).portions] == [(20, 40)]
    assert pipeline.mend(lab.spark).figures.batches == 3
    assert pipeline.mend(lab.spark).portions == ()
    lab.run(file, source=source)
    assert numbers(lab, kind) == list(range(60))


def test_a_table_that_was_restored_by_its_own_command_is_noticed(lab: Lab) -> None:
    """RESTORE and rollback leave the numbers of the batches as they are."""
    from ixion.pipelines.sinks.iceberg import iceberg_name
    from ixion.pipelines.spec.sinks import TableSink

    send(lab, 0, 10)
    lab.run(text("delta"))
    ice = text("iceberg").replace('"out"', '"ice"')
    lab.run(ice, name="i")
    send(lab, 10, 15)
    lab.run(text("delta"))
    lab.run(ice, name="i")
    path = lab.folder / "out"
    lab.spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0")
    name = iceberg_name(TableSink(format="iceberg", path=str(lab.folder / "ice")), lab.spark)
    snapshots = lab.spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").collect()
    catalog, _, rest = name.partition(".")
    lab.spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{rest}', {snapshots[-2].snapshot_id})")
    for file, pipeline in ((text("delta"), "p"), (ice, "i")):
        with pytest.raises(PipelineError, match=f"lacks offsets 10 to 14 of {lab.topic}-0"):
            lab.run(file, name=pipeline)
        assert lab.pipeline(file, pipeline).mend(lab.spark).figures.rows_in == 5
        lab.run(file, name=pipeline)
    assert numbers(lab, "delta") == list(range(15))
    assert sorted(row.n for row in lab.spark.table(name).collect()) == list(range(15))
    lab.spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{rest}', {snapshots[0].snapshot_id})")
    with pytest.raises(PipelineError, match=f"lacks offsets 0 to 14 of {lab.topic}-0"):
        lab.run(ice, name="i")


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_merged_tables_tell_what_they_have(lab: Lab, kind: str) -> None:
    """A batch that changes no row commits it too."""
    file = f"""
[format]
type = "json"
schema = "id INT, n INT"
[[sinks]]
type = "{kind}"
path = "out"
mode = "upsert"
keys = ["id"]
"""
    source = 'include = ["offset"]'
    lab.send(*({"id": n % 3, "n": n} for n in range(6)))
    lab.run(file, source=source)
    copy(lab.folder, "out", "backup")
    lab.send(*({"id": n % 3, "n": n} for n in range(6, 9)))
    lab.run(file, source=source)
    lab.send("broken")
    lab.run(file, source=source)  # no row for the table
    copy(lab.folder, "backup", "out")
    with pytest.raises(PipelineError, match=f"lacks offsets 6 to 9 of {lab.topic}-0"):
        lab.run(file, source=source)
    lab.pipeline(file, source=source).mend(lab.spark)
    lab.run(file, source=source)
    assert numbers(lab, kind) == [6, 7, 8]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_an_earlier_version_goes_on_with_one_line(
    lab: Lab, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ixion.pipelines.run.queries import Queries
    from ixion.pipelines.sinks.base import Batch

    file, warned = text(kind), list[str]()
    send(lab, 0, 20)
    with monkeypatch.context() as patch:
        patch.setattr(
            Queries,
            "identify",
            lambda self, number: Batch(pipeline="p", query=self._checkpoint.query, number=number),
        )
        run(lab, file)
    for first in (20, 30):
        send(lab, first, first + 10)
        run(lab, file, warn=warned.append)
    assert len(warned) == 1
    assert "does not tell which offsets it has" in warned[0]
    assert numbers(lab, kind) == list(range(40))


def test_a_sink_that_was_added_to_the_file_begins_where_the_pipeline_is(lab: Lab) -> None:
    send(lab, 0, 5)
    lab.run(text("parquet"))
    send(lab, 5, 8)
    lab.run(text("parquet", '[[sinks]]\ntype = "parquet"\npath = "more"\n'))
    assert numbers(lab, "parquet") == list(range(8))
    assert column(parquet_rows(lab.folder / "more"), "n") == [5, 6, 7]


def test_the_doctor_shows_all_differences_and_changes_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ixion.cli.app import execute
    from ixion.pipelines.spark import session

    @contextmanager
    def ours(_: object) -> Iterator[SparkSession]:
        yield lab.spark

    monkeypatch.setattr(session, "opened", ours)
    sinks = "".join(f'[[sinks]]\ntype = "parquet"\npath = "{name}"\n' for name in ("one", "two"))
    file = lab.folder / "p.toml"
    source = f'[source]\nbootstrap = "{lab.bootstrap}"\ntopics = ["{lab.topic}"]\n'
    file.write_text(f'name = "p"\n{source}{FORMAT}{sinks}')
    send(lab, 0, 20)
    assert execute(["pipeline", "run", str(file)]) == 0
    assert execute(["pipeline", "doctor", str(file)]) == 0
    assert "topics, checkpoint and tables agree" in capsys.readouterr().out
    shutil.rmtree(lab.folder / "one")
    shutil.rmtree(lab.folder / "two")
    assert execute(["pipeline", "doctor", str(file)]) == 1
    said = capsys.readouterr().out
    assert re.search(rf"{lab.topic}-0 +0 to 20 +20 +- +-", said), said
    for name in ("one", "two"):
        assert f"{name} lacks offsets 0 to 19 of {lab.topic}-0" in said
    assert not (lab.folder / "one").exists()
