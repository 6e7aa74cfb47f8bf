"""LeaderAndIsr of a stranger. What a controller's does is in tests/replica/test_control.py."""

from __future__ import annotations

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k04_leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


def request(version: int, topic: str, topic_id: bytes) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        topic_name=topic if version < 2 else "",
        partition_index=0,
        controller_epoch=9,
        leader=2,
        leader_epoch=99,
        isr=(2,),
        partition_epoch=9,
        replicas=(1, 2),
    )
    named = LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id, partition_states=(state,))
    return LeaderAndIsrRequest(
        controller_id=2,
        controller_epoch=99,
        type=0,
        ungrouped_partition_states=(state,) if version < 2 else (),
        topic_states=(named,) if version >= 2 else (),
        live_leaders=(),
    )


async def topic_id(broker: RealBroker) -> bytes:
    return broker.parts.image.topics["kept"].topic_id


async def leads(broker: RealBroker) -> bool:
    return broker.parts.replicas.partitions["kept", 0].leads


def test_a_stranger_cannot_take_a_leader_from_a_broker_alone(broker: Broker, asking: Asking) -> None:
    broker.create_topic("kept")
    known = broker.call(topic_id)
    for version in versions(ApiKey.LEADER_AND_ISR):
        answer = asking.ask(request(version, "kept", known), LeaderAndIsrResponse, version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert broker.call(leads)
