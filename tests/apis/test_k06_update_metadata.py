"""UpdateMetadata of a stranger. What a controller's does is in tests/replica/test_control.py."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ixion.language.protocol.messages.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions


def test_a_stranger_cannot_change_what_the_broker_knows_of_the_cluster(asking: Asking) -> None:
    asked = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=1, include_fenced_brokers=False
    )
    before = asking.ask(asked, DescribeClusterResponse)
    request = UpdateMetadataRequest(
        controller_id=2, controller_epoch=99, ungrouped_partition_states=(), topic_states=(), live_brokers=()
    )
    for version in versions(ApiKey.UPDATE_METADATA):
        answer = asking.ask(request, UpdateMetadataResponse, version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert asking.ask(asked, DescribeClusterResponse) == before
