"""Checkpoint and tables on a file system with a scheme of its own: viewfs, mounted on a folder of the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec import read_spec
from tests.pipelines.crash import crash_after_a_batch
from tests.pipelines.support import Lab, column, parquet_rows

KINDS = ("parquet", "delta", "iceberg")


def test_run_crash_and_run_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ixion.pipelines import Pipeline
    from ixion.pipelines.spark.session import jvm_pid

    (lab.folder / "mounted").mkdir()
    context: Any = lab.spark.sparkContext
    mount = f"fs.viewfs.mounttable.{lab.topic}.link./lake"
    context._jsc.hadoopConfiguration().set(mount, f"file://{lab.folder}/mounted")
    lake = f"viewfs://{lab.topic}/lake"
    text = f"""
checkpoint = "{lake}/state"
[source]
bootstrap = "{lab.bootstrap}"
topics = ["{lab.topic}"]
include = ["offset"]
[format]
type = "csv"
""" + "".join(f'[[sinks]]\ntype = "{kind}"\npath = "{lake}/{kind}"\n' for kind in KINDS)
    pipeline = Pipeline(read_spec(text, file="far.toml", folder=lab.folder))
    lab.send(*(f"{n},{n % 2}" for n in range(10)), "broken")
    with crash_after_a_batch(monkeypatch):
        pipeline.run(lab.spark)
    lab.send("10,0")
    assert [batch.batch for batch in pipeline.checkpoint(lab.spark).history()] == []
    pipeline.run(lab.spark)
    assert pipeline.check(lab.spark).schema == "`_c0` int, `_c1` int"  # kept there too
    # The first batch was written and not counted yet; what is still to come is known all the same.
    assert [(batch.rows_in, batch.lag) for batch in pipeline.checkpoint(lab.spark).history()] == [(11, 1), (1, 0)]
    with (
        pipeline.checkpoint(lab.spark).locked(jvm_pid(lab.spark)),
        pytest.raises(PipelineError, match="running already"),
    ):
        pipeline.run(lab.spark)

    for kind in KINDS:
        rows = [row.asDict() for row in lab.spark.read.format(kind).load(f"{lake}/{kind}").collect()]
        assert column(rows, "_c0") == list(range(11)), kind
    assert [row["value"] for row in parquet_rows(Path(lab.folder / "mounted/parquet_quarantine"))] == [b"broken"]
    assert not (lab.folder / ".ixion").exists()
