from __future__ import annotations

from pathlib import Path

import pytest

from tests.log.support import Box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)
