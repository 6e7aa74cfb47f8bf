"""A folder of pipelines in one Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.figures import BatchFigures
from ixion.pipelines.folder import load_folder
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
    from ixion.pipelines import many
    from ixion.pipelines.pipeline import Pipeline

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
    a, b, c = pipelines.run(follow=False, every_ms=None, again=False, at_a_time=3)
    assert failures == ["a: not just now"] * 2
    assert (a.retries, a.error, a.figures.rows_out) == (2, None, 2)
    assert (b.retries, b.error, b.figures.rows_out) == (0, None, 2)
    assert "there is no column m" in str(c.error)
    assert sorted(name for name, _ in batches) == ["a", "b"]
    assert column(lab.rows("many/a"), "n") == [1, 2]
    assert column(lab.rows("many/b"), "n") == [101, 102]
