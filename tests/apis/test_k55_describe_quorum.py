from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


def ask(
    asking: Asking, topic: str, number: int, version: int = -1
) -> tuple[DescribeQuorumResponse, ResponsePartitionData]:
    wish = TopicData(topic_name=topic, partitions=(PartitionData(partition_index=number),))
    answer = asking.ask(DescribeQuorumRequest(topics=(wish,)), DescribeQuorumResponse, version)
    assert answer.error_code == ErrorCode.NONE
    return answer, answer.topics[0].partitions[0]


def test_the_one_controller_leads_and_votes_alone(broker: Broker, asking: Asking) -> None:
    broker.create_topic("t")
    for version in versions(ApiKey.DESCRIBE_QUORUM):
        answer, quorum = ask(asking, "__cluster_metadata", 0, version)
        (voter,) = quorum.current_voters
        assert quorum.error_code == ErrorCode.NONE
        assert quorum.leader_epoch >= 1
        assert voter.replica_id == quorum.leader_id
        assert voter.log_end_offset == quorum.high_watermark > 0
        assert quorum.observers == ()
        assert (voter.last_fetch_timestamp > 0) is (version >= 1)
        if version >= 2:
            (node,) = answer.nodes
            assert node.node_id == quorum.leader_id
            assert [f"{each.host}:{each.port}" for each in node.listeners] == [broker.bootstrap]


def test_nothing_else_has_a_quorum(asking: Asking) -> None:
    for topic, number in (("t", 0), ("__cluster_metadata", 1)):
        assert ask(asking, topic, number)[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
