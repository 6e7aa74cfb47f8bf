"""The view of pipelines, from the files that a pipeline keeps in its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ixion.broker.web.console.api import pipelines
from ixion.broker.web.console.api.pipelines import look_into
from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.checkpoint.checkpoint import Checkpoint, LocalFiles
from ixion.pipelines.checkpoint.run_records import RunLog
from ixion.testing import Broker
from tests.web.posts import get
from tests.web.test_console import page


def checkpoint(folder: Path, name: str, batches: int, error: Exception | None = None) -> None:
    """Written by the pipelines' own code."""
    made = Checkpoint(str(folder), LocalFiles())
    (folder / "ixion").mkdir(parents=True)
    (folder / "ixion" / "owner.json").write_text(json.dumps({"pipeline": name, "topics": ["orders"]}))
    try:
        with RunLog("4f2a-run", [made.remember_run], str) as log:
            for number in range(batches):
                batch = BatchFigures(
                    batch=number,
                    ended="2026-11-17T05:38:55.401Z",
                    rows_in=100,
                    rows_out=97,
                    quarantined=3,
                    broken={"amount is positive": 3, "has an id": 0},
                    lag=12 - number,
                    duration_ms=800,
                    rows_per_s=125.0,
                )
                made.remember(batch)
                log.add(batch)
            if error is not None:
                raise error
    except RuntimeError:
        pass


def test_what_pipelines_wrote_is_shown(tmp_path: Path) -> None:
    checkpoint(tmp_path / "lake" / "orders", "orders", 25)
    checkpoint(tmp_path / "alone", "<b>alone</b>", 1, RuntimeError("the disk is full"))
    (tmp_path / "lake" / "other").mkdir()
    named = f"{tmp_path}/lake,{tmp_path}/alone,{tmp_path}/none"
    with Broker({"web.pipelines": named}, metrics=True) as broker:
        status, found = get(broker, "/pipelines")
        assert status == 200
        assert [each["name"] for each in found["pipelines"]] == ["<b>alone</b>", "orders"]
        assert len(found["missing"]) == 1
        assert "No such file" in found["missing"][0]
        alone, orders = found["pipelines"]
        assert (alone["state"], alone["runs"][0]["error"]) == ("failed", "the disk is full")
        assert (orders["state"], orders["topics"]) == ("complete", ["orders"])
        assert [each["batch"] for each in orders["batches"]] == list(range(24, 4, -1))
        assert orders["batches"][0]["lag"] == -12
        assert orders["broken"] == [{"expectation": "amount is positive", "rows": 60}]
        assert (orders["runs"][0]["rows_in"], orders["runs"][0]["quarantined"]) == (2500, 75)
        body = page(broker, "/pipelines")
        assert "amount is positive: 60" in body
        assert "&lt;b&gt;alone" in body
        assert "<b>alone" not in body


def test_without_folders_the_view_says_how_to_name_one() -> None:
    with Broker(metrics=True) as broker:
        assert "web.pipelines" in page(broker, "/pipelines")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for number, (name, text) in enumerate(
        (
            ("owner.json", "{"),
            ("owner.json", "[]"),
            ("history/000000001.json", '{"batch": "x"}'),
            ("history/000000001.json", '{"broken": 7}'),
            ("history/000000001.json", '{"lag": 1e999}'),
            ("history/000000001.json", '{"rows_per_s": 1e999}'),
            ("history/000000001.json", "[" * 100_000),
            ("runs/x.json", '{"figures": 7}'),
            ("owner.json", '{"topics": 7}'),
            ("owner.json", " " * (pipelines.MOST_BYTES + 1)),
        )
    ):
        folder = tmp_path / str(number)
        checkpoint(folder, "torn", 1)
        (folder / "ixion" / name).write_text(text)
        (row,) = look_into((str(folder),))["pipelines"]
        assert row["problem"], text


def test_half_of_a_surrogate_pair_in_a_file_hides_no_other_pipeline(tmp_path: Path) -> None:
    checkpoint(tmp_path, "torn", 1)
    (tmp_path / "ixion" / "owner.json").write_text('{"pipeline": "\\ud800", "topics": ["\\udfff"]}')
    (row,) = look_into((str(tmp_path),))["pipelines"]
    assert (row["name"], row["topics"]) == ("?", ["?"])


def test_there_are_at_most_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        checkpoint(tmp_path / str(number), str(number), 0)
    assert look_into((str(tmp_path),))["complete"]
    monkeypatch.setattr(pipelines, "MOST", 2)
    found = look_into((str(tmp_path),))
    assert (len(found["pipelines"]), found["complete"]) == (2, False)
