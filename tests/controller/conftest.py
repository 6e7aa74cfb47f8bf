from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controller.realm import Realm


@pytest.fixture
def realm(tmp_path: Path) -> Iterator[Realm]:
    made = Realm(tmp_path)
    yield made
    made.close()
