"""`ixion pipeline sample` sends by our own producer, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.cli.app import execute
from ixion.cli.pipeline.job import Job
from ixion.clients import Consumer, ConsumerRecord, TopicPartition
from ixion.pipelines.source.example_orders import order_events
from ixion.testing import Broker


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def start(_: Job) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(Job, "__enter__", start)
    return tmp_path / "shop.toml"


def pipeline(bootstrap: str, more: str = "") -> str:
    sink = '[format]\ntype = "json"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
    return f'name = "shop"\n[source]\nbootstrap = "{bootstrap}"\ntopics = ["shop"]\n{more}\n{sink}'


def test_a_sample_needs_no_spark(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        file.write_text(pipeline(broker.bootstrap, "create_missing = true"))
        assert execute(["pipeline", "sample", str(file), "--count", "250"]) == 0
        got: list[ConsumerRecord] = []
        with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("shop", 0)])
            while len(got) < 250:
                got += consumer.poll(1)
    assert sorted(record.value for record in got) == sorted(event.value for event in order_events(250))
    assert "sent 250 events to shop" in capsys.readouterr().out


def test_a_missing_topic_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker({"auto.create.topics.enable": False}) as broker:
        file.write_text(pipeline(broker.bootstrap))
        assert execute(["pipeline", "sample", str(file)]) == 1
    assert "shop" in capsys.readouterr().err


def test_a_login_takes_javas_client(file: Path) -> None:
    options = '[source.options]\n"kafka.security.protocol" = "SASL_SSL"'
    file.write_text(pipeline("localhost:1", options))
    with pytest.raises(AssertionError, match="Spark was started"):
        execute(["pipeline", "sample", str(file)])
