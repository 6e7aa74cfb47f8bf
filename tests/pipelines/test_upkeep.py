"""After many small batches the tables have few files, and the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.pipelines.errors import PipelineError
from tests.pipelines.support import Lab, column

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


def test_a_join_that_was_cut_off_is_finished(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ixion.pipelines.sinks.parquet import ParquetWriter

    sent = numbers(lab)
    text = FORMAT + '[[sinks]]\ntype = "parquet"\npath = "out"\n' + UPKEEP
    real = ParquetWriter.finish

    def cut(self: ParquetWriter, listed: str, stage: str) -> None:
        if "joins" in listed:
            raise OSError("the process is over")
        real(self, listed, stage)

    with monkeypatch.context() as patch:
        patch.setattr(ParquetWriter, "finish", cut)
        with pytest.raises(PipelineError):
            lab.run(text, source=SMALL_BATCHES)
    assert column(lab.rows(), "n") == sent
    lab.run(text, source=SMALL_BATCHES)
    assert column(lab.rows(), "n") == sent
    assert len(data_files(lab.folder / "out")) == 1


@pytest.mark.timeout(400)  # procedures of both formats, many small jobs
def test_delta_and_iceberg_look_after_themselves_when_told(lab: Lab) -> None:
    sent = numbers(lab, 8)
    upkeep = f'{UPKEEP}keep = "1 ms"\n'
    sinks = "".join(f'[[sinks]]\ntype = "{kind}"\npath = "{kind}"\n{upkeep}' for kind in ("delta", "iceberg"))
    lab.run(FORMAT + sinks, source=SMALL_BATCHES)
    for kind in ("delta", "iceberg"):
        path = lab.folder / kind
        assert sorted(row.n for row in lab.spark.read.format(kind).load(str(path)).collect()) == sent
    assert len(data_files(lab.folder / "delta")) == 1
    iceberg = str(lab.folder / "iceberg")
    assert lab.spark.read.format("iceberg").load(f"{iceberg}#files").count() == 1
    assert lab.spark.read.format("iceberg").load(f"{iceberg}#snapshots").count() == 1
    assert len(data_files(lab.folder / "iceberg")) == 1
