from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.metadata.session import MetadataSession
from tests.metadata.engines import ENGINES, Engine


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made = ENGINES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def session(engine: Engine) -> MetadataSession:
    return engine.session()
