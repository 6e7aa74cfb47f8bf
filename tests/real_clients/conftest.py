from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.testing import Broker
from tests.real_clients.drivers import DRIVERS, Driver
from tests.real_clients.toolbox import ToolBox


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # The messages of these tests are years old: half a minute after the start, retention would look for them.
    with Broker({"message.max.bytes": 8 << 20, "log.retention.ms": -1}) as running:
        yield running


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    return found


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """One of its own for each test."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
    broker.create_topic(name)
    return name


@pytest.fixture(scope="package")
def box() -> Iterator[ToolBox]:
    """Kafka 4.3's tools, one JVM for all tests of this package."""
    with ToolBox() as tools:
        yield tools
