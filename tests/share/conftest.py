from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.share.world import ShareWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ShareWorld]:
    made = ShareWorld(tmp_path)
    yield made
    made.close()
