"""One ZooKeeper, one broker of Apache Kafka and one of ixion for all files of this folder.

Partition 0 of each internal topic is led by Apache Kafka first, partition 1 by ixion.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from devtools import parts
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from tests.cluster.mixed import IXION, KAFKA, Mixed


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    if os.environ.get("IXION_EXPECT") == "interpreted":
        pytest.skip("a broker of Apache Kafka: once is enough, compiled")
    parts.need("kafka-3.9.1")
    parts.need("zookeeper-3.9.4")
    with Mixed(tmp_path_factory.mktemp("mixed")) as running:
        for internal in (GROUP_OFFSETS, TRANSACTION_STATE):
            # Three: with two, other rules than Kafka's place every name alike.
            running.create(internal, (KAFKA, IXION), (IXION, KAFKA), (KAFKA, IXION), cleanup_policy="compact")
        yield running
