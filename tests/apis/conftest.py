from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.testing.broker import Broker
from tests.apis.asking import Asking
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def asking(broker: Broker) -> Iterator[Asking]:
    with Asking(broker.bootstrap) as connection:
        yield connection


@pytest.fixture(scope="module")
def transacting() -> Iterator[Broker]:
    """Transactions that take too long are looked for twenty times a second; a topic "t" with three partitions."""
    with Broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}) as running:
        running.create_topic("t", 3)
        yield running


@pytest.fixture
def raw(transacting: Broker) -> Iterator[Raw]:
    with Raw(transacting.bootstrap) as client:
        yield client
