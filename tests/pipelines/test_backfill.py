"""Older records into the same table: those that were not read, each once."""

from __future__ import annotations

import pytest

from ixion.cli.pipeline.again import backfilled_lines, place_of
from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.spec.source import Start
from tests.pipelines.crash import crash_before
from tests.pipelines.support import Lab, column

TEXT = '[format]\ntype = "json"\nschema = "n INT"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
EARLIEST, LATEST = Start(kind="earliest"), Start(kind="latest")


def test_what_was_before_the_first_run_is_read_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches; the process ends when the first is in the table and not yet marked."""
    from ixion.pipelines.spark.hadoop_files import Files

    lab.send(*({"n": n} for n in range(5)))
    pipeline = lab.pipeline(TEXT, source='start = "latest"\nmax_records_per_batch = 3\n')
    with pytest.raises(PipelineError, match="has not run yet"):
        pipeline.backfill(lab.spark, EARLIEST, LATEST)
    pipeline.run(lab.spark)
    lab.send({"n": 5}, {"n": 6})
    pipeline.run(lab.spark)
    assert column(lab.rows(), "n") == [5, 6]
    cut = lab.folder / ".ixion/p/ixion/backfill/cut"  # one that ended before it had noted its plan
    cut.mkdir(parents=True)
    (cut / "plan.json.unfinished").write_text("[[")
    dry = pipeline.backfill(lab.spark, EARLIEST, LATEST, dry=True)
    said = [f"{lab.topic}-0: offsets 0 to 4 left to be read"]
    assert list(backfilled_lines(dry, dry=True, as_json=False)) == said
    with monkeypatch.context() as patch:
        patch.setattr(Files, "write_new", crash_before(Files, "write_new", 3))  # plan, rules and list of batch 0
        with pytest.raises(PipelineError):
            pipeline.backfill(lab.spark, EARLIEST, LATEST)
    assert column(lab.rows(), "n") == [0, 1, 2, 5, 6]
    assert pipeline.backfill(lab.spark, EARLIEST, LATEST).portions == ()  # all is noted; the rest is written
    assert column(lab.rows(), "n") == list(range(7))
    pipeline.run(lab.spark)
    assert column(lab.rows(), "n") == list(range(7))


def test_older_changes_do_not_bring_deleted_rows_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the table tells that `a` was deleted. The records of a refused backfill are not noted as read."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    from ixion.pipelines.run import backfill

    upsert = 'mode = "upsert"\nkeys = ["id"]\n'
    steps = '[[steps]]\nsql = "SELECT kafka_key AS id, n, kafka_offset, kafka_tombstone FROM stream"\n'
    text = f'[format]\ntype = "json"\nschema = "n INT"\n{steps}[[sinks]]\ntype = "delta"\npath = "out"\n{upsert}'
    source = 'start = "latest"\ninclude = ["key", "offset", "tombstone"]\n'
    lab.send({"n": 1}, {"n": 2}, key="a")
    lab.run(text, source=source)
    lab.send(None, key="a")
    lab.send({"n": 3}, key="b")
    lab.run(text, source=source)
    guarded = f'{text}[[expectations]]\ncheck = "kafka_tombstone OR n < 9"\notherwise = "quarantine"\n'
    lab.send({"n": 9}, key="b")
    assert lab.run(guarded, source=source).quarantined == 1
    pipeline = lab.pipeline(text, source=source)
    for again in (pipeline.replay, lambda spark: pipeline.backfill(spark, EARLIEST, LATEST)):
        with pytest.raises(PipelineError, match="could bring back rows that were deleted since"):
            again(lab.spark)
    never = lab.pipeline(text.replace(", kafka_tombstone", ""), source=source)  # no row can be a delete
    assert never.replay(lab.spark).taken.rows_out == 1
    with monkeypatch.context() as patch:
        patch.setattr(backfill, "write_extra", crash_before(backfill, "write_extra", 0))
        with pytest.raises(PipelineError):
            pipeline.backfill(lab.spark, EARLIEST, LATEST, even_deleted=True)
    admin = AdminClient({"bootstrap.servers": lab.bootstrap})
    for deleted in admin.delete_records([TopicPartition(lab.topic, 0, 1)]).values():
        deleted.result(60)
    with pytest.raises(PipelineError, match=f"records of a backfill were deleted .* {lab.topic}-0 0 to 1") as caught:
        pipeline.run(lab.spark)
    assert "failOnDataLoss" in str(caught.value.hint)
    lab.run(text, source=f'{source}[source.options]\nfailOnDataLoss = "false"\n')
    rows = lab.spark.read.format("delta").load(str(lab.folder / "out")).select("id", "n").collect()
    assert sorted(tuple(row) for row in rows) == [("a", 2), ("b", 9)]


def test_what_a_place_is() -> None:
    assert place_of("2026-01-31T08:00:00", "--from") == Start(kind="time", time_ms=1_769_846_400_000)
    assert (place_of("earliest", "--from"), place_of("latest", "--to")) == (EARLIEST, LATEST)
    with pytest.raises(SpecError, match="--to is 'yesterday'"):
        place_of("yesterday", "--to")
