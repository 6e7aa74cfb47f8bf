"""Records of the quarantine that pass by now go into the tables, each once, whatever ends the replay in between."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ixion.cli.pipeline.again import replayed_lines
from ixion.pipelines.errors import PipelineError
from tests.pipelines.crash import crash_before
from tests.pipelines.support import Lab, column

FORMAT = '[format]\ntype = "json"\nschema = "n INT"\n'
STRICT = '[[expectations]]\nname = "small"\ncheck = "n < 10"\notherwise = "quarantine"\n'


def sink(kind: str) -> str:
    return f'[[sinks]]\ntype = "{kind}"\npath = "out"\n'


def rows(lab: Lab, kind: str, path: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in lab.spark.read.format(kind).load(str(lab.folder / path)).collect()]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])  # of Parquet, see below
def test_what_passes_by_now_leaves_the_quarantine(lab: Lab, kind: str) -> None:
    lab.send({"n": 1}, {"n": 20}, "broken", {"n": 30})
    assert lab.run(FORMAT + STRICT + sink(kind)).quarantined == 3
    mended = lab.pipeline(FORMAT + sink(kind))
    if kind == "iceberg":
        dry = mended.replay(lab.spark, dry=True)
        assert list(replayed_lines(dry, dry=True, as_json=False)) == [
            "2 of 3 records would pass",
            "still in quarantine: 1 · not a JSON object",
        ]
    done = mended.replay(lab.spark)
    assert (done.tried, done.taken.rows_out, done.still_bad) == (3, 2, {"not a JSON object": 1})
    assert column(rows(lab, kind, "out"), "n") == [1, 20, 30]
    assert column(rows(lab, kind, "out_quarantine"), "value") == [b"broken"]
    if kind == "iceberg":
        assert mended.replay(lab.spark).taken.rows_in == 0


def test_a_replay_that_is_killed_is_finished_by_the_next_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends twice, before a rename: all is removed, which is not noted; then the batch is being written."""
    from ixion.pipelines.spark.hadoop_files import Files

    lab.send({"n": 1}, {"n": 20}, "broken", {"n": 30})
    lab.run(FORMAT + STRICT + sink("parquet"))
    mended = lab.pipeline(FORMAT + sink("parquet"))
    noted = lab.folder / ".ixion/p/ixion/replay"

    def replay_and_crash(times: int) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(Files, "rename", crash_before(Files, "rename", times))
            with pytest.raises(PipelineError):
                mended.replay(lab.spark)
        (left,) = noted.iterdir()
        return left.name

    assert not replay_and_crash(3).endswith(".removed")
    assert column(lab.rows("out_quarantine"), "value") == [b"broken"]
    assert replay_and_crash(2).endswith(".removed")
    assert column(lab.rows(), "n") == [1]
    lab.send({"n": 2})
    mended.run(lab.spark)
    assert column(lab.rows(), "n") == [1, 2, 20, 30]
    assert column(lab.rows("out_quarantine"), "value") == [b"broken"]
    assert not list(noted.iterdir())


def test_records_of_a_topic_that_was_made_anew_are_others(lab: Lab) -> None:
    """They have the same offsets as those of the old topic, which are still in quarantine."""
    text = FORMAT + STRICT + sink("parquet")
    lab.send({"n": 20}, "broken")
    lab.run(text)
    admin = AdminClient({"bootstrap.servers": lab.bootstrap})
    for gone in admin.delete_topics([lab.topic]).values():
        gone.result(60)
    for made in admin.create_topics([NewTopic(lab.topic, 2)]).values():
        made.result(60)
    lab.send({"n": 30}, "broken")
    (lab.folder / ".ixion/p").rename(lab.folder / ".ixion/old")  # as the hint says
    assert lab.pipeline(text).run(lab.spark, again=True).quarantined == 2
    assert lab.pipeline(FORMAT + sink("parquet")).replay(lab.spark).taken.rows_out == 2
    assert column(lab.rows(), "n") == [20, 30]
    assert column(lab.rows("out_quarantine"), "value") == [b"broken", b"broken"]


def test_what_has_no_replay(lab: Lab) -> None:
    with pytest.raises(PipelineError, match="has not run yet"):
        lab.pipeline(FORMAT + sink("parquet")).replay(lab.spark)
    lab.send({"n": 1})
    lab.run(FORMAT + sink("parquet"))
    assert list(replayed_lines(lab.pipeline(FORMAT + sink("parquet")).replay(lab.spark), dry=False, as_json=False)) == [
        "no record in quarantine"
    ]
    step = '[[steps]]\ndeduplicate = ["n"]\n'
    with pytest.raises(PipelineError, match="whose steps have memory has no replay"):
        lab.pipeline(FORMAT + step + sink("parquet")).replay(lab.spark)
