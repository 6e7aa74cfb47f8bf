"""Files of the checkpoint that a power failure left empty; keys in two partitions; figures of a killed run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.errors import PipelineError
from tests.pipelines.support import Lab, column

FILE = '[format]\ntype = "json"\nschema = "n INT"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'


class PowerError(Exception):
    """Went off."""


def newest(lab: Lab, log: str) -> Path:
    return max((lab.folder / ".ixion/p" / log).glob("[0-9]*"), key=lambda path: int(path.name))


def run(lab: Lab, warned: list[str]) -> None:
    lab.pipeline(FILE).run(lab.spark, warn=warned.append)


@pytest.mark.parametrize("torn", ["offsets", "commits", "both", "not written"])
def test_a_torn_file_of_the_checkpoint_is_put_right(lab: Lab, torn: str) -> None:
    warned = list[str]()
    for first in (0, 10):
        lab.send(*({"n": n} for n in range(first, first + 10)))
        run(lab, warned)
    assert warned == []
    if torn in ("commits", "both"):
        newest(lab, "commits").write_bytes(b"")
    if torn in ("offsets", "both"):
        newest(lab, "offsets").write_bytes(b"")
    if torn == "not written":
        path = newest(lab, "offsets")
        path.with_name(str(int(path.name) + 1)).write_bytes(b"")
    lab.send(*({"n": n} for n in range(20, 25)))
    run(lab, warned)
    assert len(warned) == (2 if torn == "both" else 1)
    assert all("was torn" in line for line in warned)
    assert column(lab.rows(), "n") == list(range(25))


def test_a_torn_file_is_named_by_other_commands(lab: Lab) -> None:
    lab.send({"n": 1})
    run(lab, [])
    newest(lab, "offsets").write_bytes(b"")
    with pytest.raises(PipelineError, match=r"offsets/0 is torn") as caught:
        lab.pipeline(FILE).check(lab.spark)
    assert "ixion pipeline run" in caught.value.hint


@pytest.mark.parametrize("when", ["before the figures are stored", "after that"])
def test_the_figures_of_a_batch_outlive_the_run_that_wrote_it(
    lab: Lab, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ixion.pipelines.run.queries import Queries

    keep = Queries._keep

    def fail(self: Queries, figures: BatchFigures, **how: Any) -> None:
        if when == "after that":
            keep(self, figures, **how)
        raise PowerError("the power went off")

    lab.send(*({"n": n} for n in range(10)), "broken")
    pipeline = lab.pipeline(FILE)
    with monkeypatch.context() as patch:
        patch.setattr(Queries, "_keep", fail)
        with pytest.raises(PipelineError, match="the power went off"):
            pipeline.run(lab.spark)
    assert len(lab.rows()) == 10
    pipeline.run(lab.spark)
    lab.send(*({"n": n} for n in range(10, 15)))
    pipeline.run(lab.spark)
    total = pipeline.checkpoint(lab.spark).totals()
    assert (total.rows_in, total.rows_out, total.quarantined) == (16, 15, 1)
    assert len(lab.rows("out_quarantine")) == 1
    assert column(lab.rows(), "n") == list(range(15))


UPSERT = """
[format]
type = "json"
schema = "id INT, n INT"
[[sinks]]
type = "delta"
path = "out"
mode = "upsert"
keys = ["id"]
"""


def test_offsets_of_two_partitions_are_not_compared(lab: Lab) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewPartitions

    source = 'include = ["offset"]'
    lab.send({"id": 7, "n": 1}, {"id": 7, "n": 2})
    lab.run(UPSERT, source=source)
    admin = AdminClient({"bootstrap.servers": lab.bootstrap})
    admin.create_partitions([NewPartitions(lab.topic, 3)])[lab.topic].result()
    lab.send({"id": 7, "n": 3}, partition=2)
    with pytest.raises(PipelineError, match=f"{lab.topic} has 3 partitions now and had 2") as caught:
        lab.run(UPSERT, source=source)
    assert "keys_stay = true" in caught.value.hint
    with pytest.raises(PipelineError, match="has 3 partitions now"):
        lab.pipeline(UPSERT, source=source).check(lab.spark)
    lab.run(UPSERT.replace("keys = ", "keys_stay = true\nkeys = "), source=source)


def test_offsets_of_two_topics_are_not_compared(lab: Lab) -> None:
    lab.send({"id": 7, "n": 1})
    lab.send({"id": 7, "n": 2}, topic=f"{lab.topic}-2")
    source = f'include = ["offset"]\ntopics = {json.dumps([lab.topic, f"{lab.topic}-2"])}'
    with pytest.raises(PipelineError, match="reads 2 topics"):
        lab.run(UPSERT, source=source)
