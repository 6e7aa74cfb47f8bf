from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


def request(kind: int = 1, operations: bool = False) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=operations, endpoint_type=kind, include_fenced_brokers=False
    )


def test_the_cluster_is_described_in_every_version(broker: Broker, asking: Asking) -> None:
    for version in versions(ApiKey.DESCRIBE_CLUSTER):
        answer = asking.ask(request(), DescribeClusterResponse, version)
        (node,) = answer.brokers
        assert answer.error_code == ErrorCode.NONE
        assert len(answer.cluster_id) == 22
        assert answer.controller_id == node.broker_id
        assert f"{node.host}:{node.port}" == broker.bootstrap
        assert answer.cluster_authorized_operations == -(2**31)


def test_operations_are_those_of_a_cluster_that_allows_everything(asking: Asking) -> None:
    answer = asking.ask(request(operations=True), DescribeClusterResponse)
    # CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE: Kafka's number.
    assert answer.cluster_authorized_operations == 8096


def test_a_client_that_looks_for_controllers_learns_that_this_is_a_broker(asking: Asking) -> None:
    assert asking.ask(request(2), DescribeClusterResponse).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert asking.ask(request(9), DescribeClusterResponse).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
