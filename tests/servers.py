"""Apache Kafka and ZooKeeper for tests: one of each version for all tests of a process, started by the first that asks.

Files that share one are a row of `TOGETHER` in tests/shares.py. Tests use names of their own for topics, groups and
paths. A test whose server has settings of its own, or is killed, starts a `RealKafka` for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from devtools.kafka import RealKafka
from devtools.parts import need
from devtools.zookeeper import VERSION, RealZooKeeper

ApacheKafka = Callable[[str], RealKafka]  # by version


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    running: dict[str, RealKafka] = {}

    def running_one(version: str) -> RealKafka:
        need(f"kafka-{version}")
        if version not in running:
            kafka = RealKafka(version, tmp_path_factory.mktemp(f"kafka-{version}"))
            kafka.start()
            running[version] = kafka
        return running[version]

    yield running_one
    for kafka in running.values():
        kafka.stop()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealZooKeeper]:
    need(f"zookeeper-{VERSION}")
    with RealZooKeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running
