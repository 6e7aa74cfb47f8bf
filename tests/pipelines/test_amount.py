"""A run with few records before it starts a JVM that does not optimise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ixion.cli.pipeline import amount as pipeline_amount
from ixion.cli.pipeline.amount import has_few
from ixion.pipelines.spark import jars, session
from ixion.pipelines.spec import PipelineSpec, read_spec
from ixion.testing import Broker
from tests.pipelines.support import send

SINK = '[[sinks]]\ntype = "delta"\npath = "out"\n'


def pipeline(bootstrap: str, folder: Path, more: str = "", sink: str = SINK) -> PipelineSpec:
    source = f'name = "p"\n[source]\nbootstrap = "{bootstrap}"\ntopics = ["t"]\n{more}\n'
    return read_spec(f'{source}[format]\ntype = "json"\nschema = "id INT"\n{sink}', folder=folder)


def test_offsets_that_were_read_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_amount, "FEW", 4)
    with Broker() as broker:
        spec = pipeline(broker.bootstrap, tmp_path)
        assert not has_few(spec)  # there is no topic
        send(broker.bootstrap, "t", ["{}"] * 3)
        assert has_few(spec)
        send(broker.bootstrap, "t", ["{}"] * 3)
        assert not has_few(spec)
        checkpoint = Path(spec.checkpoint)
        for name, lines in (("commits/0", ["v1", "{}"]), ("offsets/0", ["v1", "{}", json.dumps({"t": {"0": 4}})])):
            (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
            (checkpoint / name).write_text("\n".join(lines))
        assert has_few(spec)


@pytest.mark.parametrize(
    ("more", "sink"),
    [
        ('[source.options]\n"kafka.security.protocol" = "SSL"', SINK),
        ("", f'{SINK}mode = "upsert"\nkeys = ["id"]\n'),
        ("", f"{SINK}[sinks.upkeep]\ncompact_below_mb = 1\n"),
        ("", f'{SINK}[tables.u]\nformat = "delta"\npath = "u"\n'),
    ],
    ids=["security", "merge", "upkeep", "join"],
)
def test_other_work_may_be_long(tmp_path: Path, more: str, sink: str) -> None:
    assert not has_few(pipeline("127.0.0.1:1", tmp_path, more, sink))


def test_no_broker_is_no_error_here(tmp_path: Path) -> None:
    assert not has_few(pipeline("127.0.0.1:1", tmp_path))


@pytest.mark.parametrize("given", ["", "-XX:+UseG1GC"])
def test_a_short_run_has_one_compiler_and_one_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    pytest.importorskip("pyspark")
    options: list[str] = []

    def start(_java: str, _home: Path, _jars: object, settings: dict[str, str], _output: object) -> None:
        options.append(settings["spark.driver.extraJavaOptions"])

    monkeypatch.setattr(session, "Jvm", start)
    monkeypatch.setattr(session, "can_launch", lambda *_: True)
    monkeypatch.setattr(session, "need_java", lambda: "java")
    monkeypatch.setattr(session, "_has_jvm", lambda: False)
    monkeypatch.setattr(jars, "find", lambda *_: jars.Jars())
    conf = {"spark.driver.extraJavaOptions": given}
    for short in (True, False):
        session.Starting("p", conf=conf, class_archive="off", short=short)
    assert ["TieredStopAtLevel=1" in text for text in options] == [True, False]
    assert [text.count("GC") for text in options] == [1, 1 if given else 0]
    assert [given in text for text in options] == [True, True]
