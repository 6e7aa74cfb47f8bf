from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delay.world import DelayWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DelayWorld]:
    made = DelayWorld(tmp_path)
    made.start()
    yield made
    made.close()
