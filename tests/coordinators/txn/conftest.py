from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.coordinators.txn.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()
