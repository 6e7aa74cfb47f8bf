from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.metadata.engines import ENGINES, Engine, Session, ZooKeeperEngine

NUMBERS = count()


@pytest.fixture(params=[*ENGINES, "zookeeper"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    made: Engine
    if request.param == "zookeeper":
        zookeeper = request.getfixturevalue("zookeeper")
        made = ZooKeeperEngine(f"{zookeeper.connect}/contract/{next(NUMBERS)}")
    else:
        made = ENGINES[request.param](request.getfixturevalue("tmp_path"))
    yield made
    made.close()


@pytest.fixture
def session(engine: Engine) -> Session:
    return engine.session()
