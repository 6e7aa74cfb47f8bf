"""Small batches are interpreted, large ones run as generated code; the user's own settings come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.pipelines.support import Lab, column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHOLE, MODE = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"


class Conf(dict[str, str]):
    set = dict.__setitem__


class Session:
    def __init__(self) -> None:
        self.conf = Conf({WHOLE: "true", MODE: "FALLBACK"})


def test_settings_follow_the_size_of_the_batch() -> None:
    from ixion.pipelines.batch.small_batches import FEW, SmallBatches

    session, batches = Session(), SmallBatches()
    spark = cast("SparkSession", session)
    seen = []
    for records in (FEW, FEW - 1, 0, FEW, 1, FEW + 1):
        batches.prepare(spark, records)
        seen.append((session.conf[WHOLE], session.conf[MODE]))
    compiled, interpreted = ("true", "FALLBACK"), ("false", "NO_CODEGEN")
    assert seen == [compiled, interpreted, interpreted, compiled, interpreted, compiled]


@pytest.mark.parametrize(("few", "wanted"), [(3, "true"), (4, "false")])
def test_the_size_of_a_batch_is_counted_from_its_offsets(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, few: int, wanted: str
) -> None:
    from ixion.pipelines.batch import small_batches as small
    from ixion.pipelines.batch.write import BatchWriter

    seen: list[Any] = []
    write = BatchWriter._write

    def spied(self: BatchWriter, frame: Any, batch: Any) -> Any:
        seen.append(frame.sparkSession.conf.get(WHOLE))
        return write(self, frame, batch)

    monkeypatch.setattr(small, "FEW", few)
    monkeypatch.setattr(BatchWriter, "_write", spied)
    text = '[format]\ntype = "json"\nschema = "n INT"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
    before = {name: lab.spark.conf.get(name) for name in (WHOLE, MODE)}
    lab.spark.conf.set(WHOLE, "true")
    try:
        for first in (0, 3):
            lab.send(*({"n": number} for number in range(first, first + 3)))
            lab.run(text)
    finally:
        for name, value in before.items():
            lab.spark.conf.set(name, str(value))
    assert seen == [wanted, wanted]
    assert column(lab.rows(), "n") == list(range(6))
