from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.testing.broker import Broker
from tests.apis.asking import Asking


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def asking(broker: Broker) -> Iterator[Asking]:
    with Asking(broker.bootstrap) as connection:
        yield connection
