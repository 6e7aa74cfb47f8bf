"""A folder of pipelines in one Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ixion.cli.command import Exit
from ixion.cli.pipeline.commands import run
from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.spec.folder import load_folder
from tests.pipelines.support import Lab, column

OWN = '[source]\ntopics = ["{topic}"]\n[[steps]]\nsql = "SELECT n + {more} AS n FROM stream"\n{sink}'
SINK = '[[sinks]]\ntype = "parquet"\npath = "{name}"\n'
SHARED = '[source]\nbootstrap = "{bootstrap}"\ntopics = ["another"]\n[format]\ntype = "json"\nschema = "n INT"\n'


def fill(folder: Path, bootstrap: str, topic: str) -> None:
    folder.mkdir()
    folder.joinpath("shared.toml").write_text(SHARED.format(bootstrap=bootstrap))
    for name, more in (("a", 0), ("b", 100)):
        folder.joinpath(f"{name}.toml").write_text(OWN.format(topic=topic, more=more, sink=SINK.format(name=name)))


def test_what_a_file_does_not_say_is_shared(tmp_path: Path) -> None:
    fill(tmp_path / "many", "host:1", "t")
    a, b = load_folder(tmp_path / "many")
    assert (a.name, b.name) == ("a", "b")
    assert (a.source.bootstrap, a.source.topics, a.format.schema) == ("host:1", ("t",), "n INT")


def test_mistakes_in_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no pipeline in"):
        load_folder(tmp_path)
    fill(tmp_path / "many", "host:1", "t")
    twin = (tmp_path / "many" / "a.toml").read_text()
    (tmp_path / "many" / "c.toml").write_text(f'name = "a"\n{twin}')
    with pytest.raises(SpecError, match=r"two pipelines in .* have the name a"):
        load_folder(tmp_path / "many")
    (tmp_path / "many" / "shared.toml").write_text('name = "x"\n')
    with pytest.raises(SpecError, match=r"shared\.toml: name cannot be shared"):
        load_folder(tmp_path / "many")
    (tmp_path / "many" / "shared.toml").write_text("[[")
    with pytest.raises(SpecError, match=r"shared\.toml: this is not TOML"):
        load_folder(tmp_path / "many")


def test_pipelines_run_side_by_side_and_again_if_that_can_help(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of all are called `stream`: each pipeline sees its own. One fails twice, one for good."""
    from ixion.pipelines.pipeline import Pipeline
    from ixion.pipelines.run import several_pipelines as many

    fill(lab.folder / "many", lab.bootstrap, lab.topic)
    broken = OWN.format(topic="nowhere", more=0, sink=SINK.format(name="c")).replace("SELECT n", "SELECT m")
    (lab.folder / "many" / "c.toml").write_text(broken.replace('"nowhere"', f'"{lab.topic}"'))
    monkeypatch.setattr(many, "FIRST_S", 0.0)
    left = {"a": 2}
    real = Pipeline.run

    def run(self: Pipeline, *given: object, **named: object) -> object:
        if left.get(self.spec.name):
            left[self.spec.name] -= 1
            raise PipelineError("not just now", retry=True)
        return real(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Pipeline, "run", run)
    lab.send({"n": 1}, {"n": 2})
    batches: list[tuple[str, BatchFigures]] = []
    failures: list[str] = []
    pipelines = many.Many(
        [Pipeline(spec) for spec in load_folder(lab.folder / "many")],
        lab.spark,
        retries=2,
        report=lambda name, batch: batches.append((name, batch)),
        failed=lambda name, error, _: failures.append(f"{name}: {error}"),
    )
    a, b, c = pipelines.run(follow=False, every_ms=None, at_a_time=3)
    assert failures == ["a: not just now"] * 2
    assert (a.retries, a.error, a.figures.rows_out) == (2, None, 2)
    assert (b.retries, b.error, b.figures.rows_out) == (0, None, 2)
    assert "there is no column m" in str(c.error)
    assert sorted(name for name, _ in batches) == ["a", "b"]
    assert column(lab.rows("many/a"), "n") == [1, 2]
    assert column(lab.rows("many/b"), "n") == [101, 102]


def test_the_command_runs_a_folder(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the Spark of the tests: a second one takes long to start."""
    from ixion.pipelines.spark import session

    opened: list[dict[str, object]] = []

    def open_session(_: str, **given: object) -> object:
        opened.append(given)
        return lab.spark

    monkeypatch.setattr(session, "open_session", open_session)
    monkeypatch.setattr(session, "close_session", lambda _: None)
    fill(lab.folder / "many", lab.bootstrap, lab.topic)
    lab.send({"n": 1}, "broken")

    def command(as_json: bool) -> None:
        given = {"follow": False, "every": None, "again": False, "retries": 0, "at_a_time": 2, "master": None}
        given["new_rules"] = False
        more = {"conf": ["a.b=c"], "jars": "x.jar", "as_json": as_json, "metrics_port": 0, "verbose": False}
        run(lab.folder / "many", **given, **more)  # type: ignore[arg-type]

    command(as_json=False)
    shown = capsys.readouterr().out
    for name in ("a", "b"):
        assert f"{name} · batch 0 · 2 rows in · 1 out · 1 quarantined" in shown
        assert f"{name}: 2 rows in · 1 out · 1 quarantined" in shown
    assert (opened[0]["conf"], opened[0]["jars"]) == ({"a.b": "c"}, ("x.jar",))
    assert opened[0]["formats"] == {"parquet", "json"}
    file = lab.folder / "many" / "b.toml"
    file.write_text(file.read_text().replace("n + 100", "m + 100"))
    lab.send({"n": 2})
    with pytest.raises(Exit) as caught:
        command(as_json=True)
    assert caught.value.code == 1
    summaries = {
        line["pipeline"]: line["summary"]
        for line in map(json.loads, capsys.readouterr().out.splitlines())
        if "summary" in line
    }
    assert (summaries["a"]["rows_out"], summaries["a"]["error"]) == (1, None)
    assert "there is no column m" in summaries["b"]["error"]
    assert column(lab.rows("many/a"), "n") == [1, 2]
