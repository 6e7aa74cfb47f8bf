"""ControlledShutdown of a stranger. What a broker's does is in tests/controller/cluster."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k07_controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions


def test_a_client_may_not_shut_a_broker_down(asking: Asking) -> None:
    for version in versions(ApiKey.CONTROLLED_SHUTDOWN):
        if version == 0:
            continue  # its request header has no client id, and no broker since 0.9 sends it
        answer = asking.ask(ControlledShutdownRequest(broker_id=1), ControlledShutdownResponse, version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
