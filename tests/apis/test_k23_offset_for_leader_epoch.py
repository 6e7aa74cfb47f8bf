from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.filling import fill


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Ten records in epoch 0, none in 1, five in 2."""
    with Broker() as running:
        running.create_topic("t", 2)
        fill(running.bootstrap, "t")
        running.call(lambda real: lead_anew(real, 2))
        fill(running.bootstrap, "t", count=5)
        yield running


async def lead_anew(real: RealBroker, epoch: int) -> None:
    topic = real.parts.image.topics["t"]
    partition = topic.partitions[0]
    real.parts.replicas.lead("t", 0, topic.topic_id, epoch, partition.isr, partition.replicas)


Found = tuple[int, int, int]


def ask(asking: Asking, topic: str, number: int, known: int, epoch: int, who: int = -1, version: int = -1) -> Found:
    wish = OffsetForLeaderPartition(partition=number, current_leader_epoch=known, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=who, topics=(OffsetForLeaderTopic(topic=topic, partitions=(wish,)),)
    )
    (found,) = asking.ask(request, OffsetForLeaderEpochResponse, version).topics
    (result,) = found.partitions
    assert (found.topic, result.partition) == (topic, number)
    return result.error_code, result.leader_epoch, result.end_offset


def test_where_epochs_end_in_every_version(asking: Asking) -> None:
    for version in versions(ApiKey.OFFSET_FOR_LEADER_EPOCH):
        assert ask(asking, "t", 0, -1, 0, version=version) == (ErrorCode.NONE, 0, 10)
        assert ask(asking, "t", 0, -1, 1, version=version) == (ErrorCode.NONE, 0, 10)
        assert ask(asking, "t", 0, 2, 2, version=version) == (ErrorCode.NONE, 2, 15)


def test_what_is_not_known(asking: Asking) -> None:
    assert ask(asking, "t", 0, -1, 9) == (ErrorCode.NONE, -1, -1)
    assert ask(asking, "t", 0, -1, -1) == (ErrorCode.NONE, -1, -1)
    assert ask(asking, "t", 9, -1, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert ask(asking, "none", 0, -1, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_a_client_that_knows_another_leader_epoch(asking: Asking) -> None:
    assert ask(asking, "t", 0, 1, 0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert ask(asking, "t", 0, 3, 0) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


def test_only_the_leader_answers_except_for_debugging(broker: Broker, asking: Asking) -> None:
    async def follow(real: RealBroker) -> None:
        partition = real.parts.replicas.partitions["t", 1]
        partition.make_follower(7, 0, (7,), (7, real.parts.node_id))

    broker.call(follow)
    assert ask(asking, "t", 1, -1, 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
    assert ask(asking, "t", 1, -1, 0, who=-2) == (ErrorCode.NONE, 0, 0)


def test_epochs_survive_a_restart(tmp_path: Path) -> None:
    for expected in (0, 1):
        with Broker(data=str(tmp_path)) as running:
            if expected == 0:
                running.create_topic("t")
                fill(running.bootstrap, "t")
            with Asking(running.bootstrap) as asking:
                assert ask(asking, "t", 0, -1, 0) == (ErrorCode.NONE, 0, 10)
