"""When tables are looked after, and what stands aside for a run; without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devtools.parts import need_module
from ixion.pipelines.checkpoint.checkpoint import Checkpoint, open_checkpoint
from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.spec import read_spec
from ixion.pipelines.spec.sinks import TableSink
from ixion.pipelines.spec.upkeep import UpkeepSpec
from ixion.pipelines.spec.upsert import UpsertSpec

if TYPE_CHECKING:
    from ixion.pipelines.upkeep.schedule import Keeper

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
HOURLY = UpkeepSpec(keep_ms=1, every_ms=3_600_000)
ADDED = TableSink(format="delta", path="/added", upkeep=HOURLY)
CHANGED = TableSink(format="iceberg", path="/changed", upkeep=HOURLY, upsert=UpsertSpec(keys=("id",)))
FILES = TableSink(format="parquet", path="/files", upkeep=UpkeepSpec(compact_below_bytes=1))
TABLES = (ADDED, CHANGED, FILES)
SPARK: Any = None


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    need_module("pyspark")
    return open_checkpoint(str(tmp_path / "c"))


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Tables that were looked after, and whether beside a run."""
    need_module("pyspark")
    from ixion.pipelines.upkeep import schedule as upkeep_times
    from ixion.pipelines.upkeep.results import Upkept

    seen: list[tuple[str, bool]] = []

    def look_after(sink: TableSink, _: str, __: Any, *, beside: bool, now: Callable[[], datetime]) -> Upkept:
        seen.append((sink.path, beside))
        return Upkept(table=sink.label, at=now().isoformat())

    monkeypatch.setattr(upkeep_times, "look_after", look_after)
    return seen


def keeper(checkpoint: Checkpoint, now: datetime = NOW, tables: tuple[TableSink, ...] = TABLES, **more: Any) -> Keeper:
    from ixion.pipelines.upkeep.schedule import Keeper

    return Keeper(tables, "p", more.pop("spark", SPARK), checkpoint, now=lambda: now, **more)


def test_a_schedule_outlives_its_runs(checkpoint: Checkpoint, looked: list[tuple[str, bool]]) -> None:
    keeper(checkpoint).look()
    assert [path for path, _ in looked] == ["/added", "/changed", "/files"]
    for later, due in (
        (30, ["/files"]),
        (60, ["/added", "/changed", "/files"]),
        (-1000, ["/added", "/changed", "/files"]),
    ):
        looked.clear()  # the last one: the clock was set back
        keeper(checkpoint, NOW + timedelta(minutes=later)).look()
        assert [path for path, _ in looked] == due
    looked.clear()
    keeper(checkpoint, NOW - timedelta(minutes=999)).look(at_once=True)
    assert len(looked) == 3


def test_what_would_be_in_the_way_of_a_run_is_left(checkpoint: Checkpoint, looked: list[tuple[str, bool]]) -> None:
    with checkpoint.locked():
        results = keeper(checkpoint).look_beside(checkpoint.free, at_once=True)
    assert looked == [("/added", True)]
    assert [(one.table.split()[-1], one.left) for one in results[1:]] == [
        ("/changed", "the pipeline is running"),
        ("/files", "the pipeline is running"),
    ]
    assert results[1].line() == "iceberg /changed: postponed, the pipeline is running"
    looked.clear()
    keeper(checkpoint).look_beside(checkpoint.free, at_once=True)
    assert looked == [("/added", True), ("/changed", False), ("/files", False)]


def test_a_run_waits_for_upkeep_and_not_for_a_run(checkpoint: Checkpoint) -> None:
    began, entered = threading.Event(), threading.Event()

    def run() -> None:
        began.set()
        with checkpoint.locked():
            entered.set()

    thread = threading.Thread(target=run)
    with checkpoint.free() as free:
        assert free
        thread.start()
        assert began.wait(60)
        assert not entered.wait(0.5)
    assert entered.wait(60)
    thread.join()
    with checkpoint.locked(), pytest.raises(PipelineError, match="running already"), checkpoint.locked():
        pass
    with checkpoint.locked(), checkpoint.free() as free:
        assert not free


def test_in_a_run_that_goes_on_changed_tables_wait_for_the_gate(
    checkpoint: Checkpoint, looked: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ixion.pipelines.upkeep import schedule as upkeep_times

    class Session:
        def newSession(self) -> Session:  # noqa: N802 - as Spark calls it
            return self

        @property
        def sparkContext(self) -> Session:  # noqa: N802
            return self

        def setJobGroup(self, *_: object, **__: object) -> None:  # noqa: N802
            pass

    monkeypatch.setattr(upkeep_times, "LOOK_S", 0.01)
    gate, added, changed, vacuumed = threading.Lock(), threading.Event(), threading.Event(), threading.Event()
    events = {"delta /added": added, "iceberg /changed": changed, "delta /vacuumed": vacuumed}
    kept = replace(ADDED, upkeep=replace(HOURLY, keep_ms=24 * 3_600_000))
    tables = (kept, replace(ADDED, path="/vacuumed"), CHANGED, FILES)  # FILES has no `every`
    one = keeper(checkpoint, tables=tables, spark=Session(), done=lambda result: events[result.table].set())
    gate.acquire()  # as a batch that is not committed yet, whose files VACUUM would take for those of no version
    with one.beside(gate, lambda: False):
        try:
            assert added.wait(60)
            assert not vacuumed.wait(0.2)
        finally:
            gate.release()
        assert vacuumed.wait(60)
        assert changed.wait(60)
    assert [path for path, _ in looked] == ["/added", "/vacuumed", "/changed"]


def test_upkeep_that_fails_is_reported_and_tried_the_next_time(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_module("pyspark")
    from ixion.pipelines.upkeep import schedule as upkeep_times

    class Session:
        def __getattr__(self, name: str) -> Any:
            return self if name == "sparkContext" else lambda *_, **__: self

    def broken(*_: object, **__: object) -> None:
        raise PipelineError("another job has changed the table")

    monkeypatch.setattr(upkeep_times, "LOOK_S", 0.01)
    monkeypatch.setattr(upkeep_times, "look_after", broken)
    said, heard = [], threading.Event()

    def warn(text: str) -> None:
        said.append(text)
        heard.set()

    with keeper(checkpoint, tables=(ADDED,), spark=Session(), warn=warn).beside(threading.Lock(), lambda: False):
        assert heard.wait(60)
    assert said == ["upkeep of delta /added failed: another job has changed the table"]  # once an hour, not a second
    assert checkpoint.upkeep()["delta /added"]["at"] == "2026-01-31T08:00:00+00:00"
    said.clear()
    both = replace(ADDED, path="/first"), replace(ADDED, path="/second")
    assert keeper(checkpoint, tables=both, warn=warn).look() == []  # at the end of a run, which does not fail
    assert [text.partition(" failed")[0] for text in said] == ["upkeep of delta /first", "upkeep of delta /second"]


def test_young_versions_are_kept_while_a_run_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("pyspark")
    from ixion.pipelines.upkeep import tables as upkeep

    kept = []

    def delta(sink: TableSink, _: Any, done: Any) -> Any:
        kept.append(sink.upkeep.keep_ms)
        return done

    monkeypatch.setattr(upkeep, "_look_after_delta", delta)
    for beside in (True, False):
        upkeep.look_after(ADDED, "p", SPARK, beside=beside)
    week = replace(ADDED, upkeep=UpkeepSpec(keep_ms=7 * upkeep.DAY_MS))
    upkeep.look_after(week, "p", SPARK, beside=True)
    assert kept == [upkeep.DAY_MS, 1, 7 * upkeep.DAY_MS]


@pytest.mark.parametrize(
    ("kind", "lines", "message"),
    [
        ("delta", 'every = "1h"', "upkeep needs compact_below_mb"),
        ("parquet", 'cluster_by = ["a"]', "only for delta and iceberg"),
        ("delta", 'orphans = "3 days"', "is only for iceberg"),
        ("iceberg", 'orphans = "1h"', "must be at least a day"),
    ],
)
def test_upkeep_that_makes_no_sense_is_refused(kind: str, lines: str, message: str) -> None:
    head = '[source]\ntopics = ["t"]\n[format]\ntype = "text"\n'
    with pytest.raises(SpecError, match=message):
        read_spec(f'{head}[[sinks]]\ntype = "{kind}"\npath = "x"\n[sinks.upkeep]\n{lines}\n')
