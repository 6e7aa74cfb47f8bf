"""After many small batches the tables have few files, and the same rows."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING

import pytest

from tests.pipelines.crash import crash_after_a_batch
from tests.pipelines.support import PATIENCE_S, Lab, column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ixion.pipelines.upkeep.results import Upkept

FORMAT = '[format]\ntype = "json"\nschema = "n INT, half INT"\n'
UPKEEP = "[sinks.upkeep]\ncompact_below_mb = 1\n"
SMALL_BATCHES = "max_records_per_batch = 4"


def data_files(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*.parquet")
        if not {"_delta_log", "metadata"} & set(path.parts)
    )


def numbers(lab: Lab, count: int = 12) -> list[int]:
    lab.send(*({"n": n, "half": n % 2} for n in range(count)))
    return list(range(count))


def test_parquet_files_are_joined(lab: Lab) -> None:
    sent = numbers(lab)
    sink = '[[sinks]]\ntype = "parquet"\npath = "out"\npartition_by = ["half"]\n'
    lab.run(FORMAT + sink + UPKEEP, source=SMALL_BATCHES)
    files = data_files(lab.folder / "out")
    assert [Path(name).parent.name for name in files] == ["half=0", "half=1"]
    assert column(lab.rows(), "n") == sent
    assert all(row["half"] == row["n"] % 2 for row in lab.rows())


def test_groups_just_reach_the_size_that_is_wanted(spark_parts: None) -> None:
    from ixion.pipelines.upkeep.join_parquet import groups

    files = [(f"{number}", 40) for number in range(7)]
    assert list(groups(files, 100)) == [["0", "1", "2"], ["3", "4", "5"]]  # one alone stays as it is
    assert list(groups([("a", 10), ("b", 10)], 100)) == [["a", "b"]]
    assert list(groups([], 100)) == []


def test_joined_files_keep_every_column(spark: SparkSession, tmp_path: Path) -> None:
    """A file whose column has another type stays by itself; two of its like are joined."""
    import pyarrow
    from pyarrow import parquet

    from ixion.pipelines.spec.sinks import TableSink
    from ixion.pipelines.spec.upkeep import UpkeepSpec
    from ixion.pipelines.upkeep.tables import look_after

    table = tmp_path / "out"
    table.mkdir()
    sink = TableSink(format="parquet", path=str(table), upkeep=UpkeepSpec(compact_below_bytes=1 << 20))
    rows: list[dict[str, object]] = [{"id": 1, "a": 1}, {"id": 2, "a": 2, "b": "two"}, {"id": 3, "b": "three"}]

    def add(number: int, row: dict[str, object]) -> None:
        name = f"p-01234567-{number:09d}-00000.snappy.parquet"
        parquet.write_table(pyarrow.Table.from_pylist([row]), table / name)

    for number, row in enumerate(rows):
        add(number, row)
    look_after(sink, "p", spark)
    (joined,) = table.glob("*.parquet")
    found = parquet.read_table(joined).to_pylist()
    assert sorted(found, key=lambda row: int(row["id"])) == [{"id": None, "a": None, "b": None, **row} for row in rows]
    for number in (4, 5):
        add(number, {"id": number, "a": "text"})
    look_after(sink, "p", spark)
    (other,) = set(table.glob("*.parquet")) - {joined}
    assert [row["a"] for row in parquet.read_table(other).to_pylist()] == ["text", "text"]


def test_whose_file_it_is(spark_parts: None) -> None:
    from ixion.pipelines.sinks.base import writers_of
    from ixion.pipelines.sinks.parquet import is_file_of

    mine = ["shop-0123abcd-000000007-00001.snappy.parquet", "shop-joined-0123abcd.zstd.parquet"]
    others = [name.replace("shop", "shop-eu") for name in mine] + [name.replace("shop", "workshop") for name in mine]
    assert [name for name in mine + others if is_file_of("shop", name)] == mine
    assert [name for name in mine + others if is_file_of("shop-eu", name)] == others[:2]
    query = "0123abcd-0123-0123-0123-0123456789ab"
    assert re.match(writers_of("shop"), f"shop-{query}")
    assert not re.match(writers_of("shop"), f"shop-eu-{query}")


def test_at_every_moment_of_a_join_no_row_is_there_twice_and_a_cut_loses_none(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is looked at before every removal and rename; the process ends before one after the other."""
    from ixion.pipelines.sinks.parquet import ParquetWriter
    from ixion.pipelines.spark.hadoop_files import Files

    sent = numbers(lab)
    text = FORMAT + '[[sinks]]\ntype = "parquet"\npath = "out"\n'
    lab.run(text, source=SMALL_BATCHES)
    assert len(data_files(lab.folder / "out")) == 3
    seen: list[list[int]] = []
    joining = False
    steps_left = 0
    real = {name: getattr(Files, name) for name in ("remove", "rename")}
    finish = ParquetWriter.finish

    def watched(name: str) -> Callable[..., None]:
        def step(self: Files, *arguments: str) -> None:
            nonlocal steps_left
            if joining:
                seen.append(column(lab.rows(), "n"))
                if steps_left == 0:
                    raise KeyboardInterrupt
                steps_left -= 1
            real[name](self, *arguments)

        return step

    def watched_finish(self: ParquetWriter, listed: str, stage: str) -> None:
        nonlocal joining
        joining = "joins" in listed
        try:
            finish(self, listed, stage)
        finally:
            joining = False

    monkeypatch.setattr(ParquetWriter, "finish", watched_finish)
    for name in real:
        monkeypatch.setattr(Files, name, watched(name))
    for steps in range(5):  # three removals, a rename, the removal of what was staged
        steps_left = steps
        with pytest.raises(KeyboardInterrupt):
            lab.run(text + UPKEEP, source=SMALL_BATCHES)
    steps_left = 1000
    assert lab.run(text + UPKEEP, source=SMALL_BATCHES).rows_in == 0
    assert column(lab.rows(), "n") == sent
    assert len(data_files(lab.folder / "out")) == 1
    assert all(len(rows) == len(set(rows)) for rows in seen)
    assert {len(rows) for rows in seen} == {12, 8, 4, 0}
    assert not list(lab.folder.glob("out/_ixion/p/joins/*.json"))


def test_a_folder_whose_name_is_a_pattern(lab: Lab) -> None:
    """With the checkpoint, which keeps the rows for the second table and the replayed records."""
    lab = replace(lab, folder=lab.folder / "f[1]{a}*?")
    sinks = "".join(f'[[sinks]]\ntype = "parquet"\npath = "{path}"\n{UPKEEP}' for path in ("a", "b"))
    check = '[[expectations]]\nname = "p"\ncheck = "n > 0"\notherwise = "quarantine"\n'
    for number in (1, 2):
        lab.send({"n": number}, {"n": -number})
        lab.run(FORMAT + check + sinks)
    lab.pipeline(FORMAT + check.replace("0", "-2") + sinks).replay(lab.spark)
    for path in ("a", "b"):
        assert column(lab.rows(path), "n") == [-1, 1, 2]
        assert len(data_files(lab.folder / path)) == 2, "those of the two runs were joined"
    assert len(lab.rows("a_quarantine")) == 1


@pytest.mark.timeout(900)  # procedures of both formats, many small jobs
def test_upkeep_of_delta_and_iceberg_by_their_own_means(lab: Lab) -> None:
    sent = numbers(lab, 8)
    upkeep = f'{UPKEEP}keep = "1 ms"\n'
    sinks = "".join(f'[[sinks]]\ntype = "{kind}"\npath = "it\'s {kind}"\n{upkeep}' for kind in ("delta", "iceberg"))
    upkept: list[Upkept] = []
    lab.pipeline(FORMAT + sinks, source=SMALL_BATCHES).run(lab.spark, upkept=upkept.append)
    delta, iceberg = upkept
    assert (delta.joined, delta.into, delta.removed_files) == (2, 1, 2)
    assert (iceberg.joined, iceberg.into, iceberg.removed_versions) == (2, 1, 3)
    assert min(delta.removed_bytes, iceberg.removed_bytes, iceberg.removed_files) > 0
    assert f"2 files joined into 1, 2 files removed, {delta.removed_bytes / 1e6:.1f} MB" in delta.line()
    for kind in ("delta", "iceberg"):
        path = lab.folder / f"it's {kind}"
        assert sorted(row.n for row in lab.spark.read.format(kind).load(str(path)).collect()) == sent
    assert len(data_files(lab.folder / "it's delta")) == 1
    path = lab.folder / "it's iceberg"
    assert lab.spark.read.format("iceberg").load(f"{path}#files").count() == 1
    assert lab.spark.read.format("iceberg").load(f"{path}#snapshots").count() == 1
    assert len(data_files(path)) == 1


@pytest.mark.timeout(1800)
def test_upkeep_beside_a_run_that_goes_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are joined, and all that no version has are removed at once, while batches come."""
    from ixion.cli.pipeline.metrics import FiguresPage
    from ixion.pipelines.run.progress import Progress

    monkeypatch.setattr("ixion.pipelines.upkeep.schedule.LOOK_S", 0.5)
    text = f'{FORMAT}[[sinks]]\ntype = "delta"\npath = "out"\n{UPKEEP}every = "1 ms"\nkeep = "1 ms"\n'
    page, held, warnings = FiguresPage(["p"]), list[Progress](), list[str]()
    arrived, saved = Semaphore(0), Event()

    def upkept(done: Upkept) -> None:
        page.add_upkeep("p", done)
        (totals,) = page.upkeep["p"].values()
        if totals["joined"] and totals["removed_files"]:
            saved.set()

    def follow() -> None:
        run = lab.pipeline(text).run
        run(
            lab.spark,
            follow=True,
            every_ms=100,
            report=lambda _: arrived.release(),
            started=held.append,
            warn=warnings.append,
            upkept=upkept,
        )

    thread = Thread(target=follow)
    thread.start()
    for number in range(3):
        lab.send({"n": number, "half": number % 2})
        assert arrived.acquire(timeout=2 * PATIENCE_S)
    assert saved.wait(2 * PATIENCE_S), page.upkeep
    held[0].stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert not warnings
    assert sorted(row.n for row in lab.spark.read.format("delta").load(str(lab.folder / "out")).collect()) == [0, 1, 2]


def test_a_batch_that_is_to_come_again_stays_known_to_its_table(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run is killed when its batch is in the table; the second is stopped before the batch comes again."""
    plain = f'{FORMAT}[[sinks]]\ntype = "iceberg"\npath = "ice"\n'
    upkeep = f'{plain}{UPKEEP}keep = "1 ms"\n'
    lab.send({"n": 0, "half": 0})
    lab.run(plain)
    lab.send({"n": 1, "half": 1})
    with crash_after_a_batch(monkeypatch):
        lab.run(upkeep)
    stopped = lab.pipeline(upkeep).run(lab.spark, started=lambda progress: progress.stop())
    assert stopped.batches == 0
    lab.run(upkeep)
    ice = lab.spark.read.format("iceberg")
    assert sorted(row.n for row in ice.load(str(lab.folder / "ice")).collect()) == [0, 1]
    assert ice.load(f"{lab.folder}/ice#snapshots").count() == 1  # in the end it is looked after


def test_ctrl_c_twice_ends_upkeep_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ixion.cli.pipeline.job import Job, run_job

    sent = numbers(lab, 4)
    done: list[str] = []

    def endless(*_: object, **__: object) -> None:
        for name in ("once", "twice"):
            os.kill(os.getpid(), signal.SIGINT)
            done.append(name)

    monkeypatch.setattr("ixion.pipelines.upkeep.schedule.look_after", endless)
    job = Job(lab.folder / "p.toml", None, None, "", False)
    job.pipeline = lab.pipeline(f'{FORMAT}[[sinks]]\ntype = "parquet"\npath = "out"\n{UPKEEP}')
    job.spark = lab.spark
    with pytest.raises(KeyboardInterrupt):
        run_job(job, follow=False, every_ms=None, again=False, as_json=False, metrics_port=None)
    assert done == ["once"]
    assert column(lab.rows(), "n") == sent
