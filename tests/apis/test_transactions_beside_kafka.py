"""Apache Kafka 4.3 gives the same answers, a hundred in a row, but for one that it has changed since."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.txn_script import converse

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="a broker of Apache Kafka: once is enough, compiled"
)

# A commit that comes after the coordinator has aborted: KAFKA-20785 made it PRODUCER_FENCED, after 4.3.
CHANGED = [
    ("end new 0 True v5: ('INVALID_TXN_STATE', False, -1)", "end new 0 True v5: ('PRODUCER_FENCED', False, -1)"),
]


def talk(bootstrap: str) -> list[str]:
    with Raw(bootstrap) as raw:
        topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1, assignments=(), configs=())
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False)
        assert raw.ask(ApiKey.CREATE_TOPICS, 4, request).topics[0].error_code == 0
        for key_type in (0, 1):
            find = FindCoordinatorRequest(key="x", key_type=key_type)
            while raw.ask(ApiKey.FIND_COORDINATOR, 2, find).error_code:
                time.sleep(0.1)  # Kafka makes its internal topics while the client waits
        return converse(raw)


def test_every_answer_is_kafkas(tmp_path: Path) -> None:
    need("kafka-4.3.0")
    few = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    with RealKafka("4.3.0", tmp_path, heap="512m", properties=few) as kafka:
        theirs = talk(kafka.bootstrap)
    with Broker() as broker:
        ours = talk(broker.bootstrap)
    assert len(ours) > 90
    assert len(ours) == len(theirs)
    different = [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]]
    assert different == CHANGED
