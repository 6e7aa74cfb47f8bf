"""AlterPartition of a stranger. What a leader's does is in tests/controller/cluster."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions


def test_a_stranger_changes_no_isr(asking: Asking) -> None:
    for version in versions(ApiKey.ALTER_PARTITION):
        answer = asking.ask(AlterPartitionRequest(broker_id=1, topics=()), AlterPartitionResponse, version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
