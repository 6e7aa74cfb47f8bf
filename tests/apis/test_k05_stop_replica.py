"""StopReplica of a stranger. What a controller's does is in tests/replica/test_control.py."""

from __future__ import annotations

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k05_stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


def request(version: int, topic: str) -> StopReplicaRequest:
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    return StopReplicaRequest(
        controller_id=2,
        controller_epoch=99,
        delete_partitions=version < 3,
        ungrouped_partitions=(StopReplicaPartitionV0(topic_name=topic, partition_index=0),) if version < 1 else (),
        topics=(StopReplicaTopicV1(name=topic, partition_indexes=(0,)),) if version in (1, 2) else (),
        topic_states=(StopReplicaTopicState(topic_name=topic, partition_states=(state,)),) if version >= 3 else (),
    )


async def has_log(broker: RealBroker) -> bool:
    return ("kept", 0) in broker.parts.logs.logs


def test_a_stranger_cannot_delete_a_replica(broker: Broker, asking: Asking) -> None:
    broker.create_topic("kept")
    for version in versions(ApiKey.STOP_REPLICA):
        answer = asking.ask(request(version, "kept"), StopReplicaResponse, version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert broker.call(has_log)
