"""The commands run against ixion itself, and against Apache Kafka with the compiled package: a JVM takes a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.testing import Broker
from tests.cli.harness import Ixion

KAFKA = "4.3.0"


@pytest.fixture(scope="session", params=["ixion", "kafka"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "ixion":
        with Broker() as broker:
            yield broker.bootstrap
        return
    if os.environ.get("IXION_EXPECT") == "interpreted":
        pytest.skip("runs with the compiled package, see the module")
    need(f"kafka-{KAFKA}")
    with RealKafka(KAFKA, tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka.bootstrap


@pytest.fixture
def ixion(
    bootstrap: str, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    return Ixion(bootstrap, capfdbinary, monkeypatch, tmp_path)
