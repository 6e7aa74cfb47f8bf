"""The peer of the broker's benchmarks."""

from __future__ import annotations

import pytest

from benchmarks.loads.broker_servers import apache_kafka
from devtools.kafka import RealKafka


def test_the_peer_has_all_of_its_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The options that let a Kafka of the tests start sooner would make it slower to measure against."""
    options: list[str] = []
    monkeypatch.setattr(RealKafka, "format", lambda kafka: None)
    monkeypatch.setattr(RealKafka, "launch", lambda kafka: options.extend(kafka.options))
    monkeypatch.setattr(RealKafka, "pid", 0)
    with apache_kafka():
        pass
    assert options == ["-Xmx1g"]
