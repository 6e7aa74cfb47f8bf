"""The commands run against ixion itself, and against Apache Kafka with the compiled package: a JVM takes a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.testing import Broker
from tests.cli.harness import Ixion
from tests.servers import ApacheKafka

KAFKA = "4.3.0"


@pytest.fixture(scope="package")
def our_own() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="package")
def real_kafka(apache_kafka: ApacheKafka) -> str:
    if os.environ.get("IXION_EXPECT") == "interpreted":
        pytest.skip("runs with the compiled package, see the module")
    return apache_kafka(KAFKA).bootstrap


@pytest.fixture(params=["our_own", "real_kafka"], ids=["ixion", "kafka"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Each is started once, in whatever order the tests come."""
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def ixion(
    bootstrap: str, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    return Ixion(bootstrap, capfdbinary, monkeypatch, tmp_path)
