"""StopReplica, 0 to 4: the controller sends the replicas to stop, and which of them to delete.

Version 1 brought topics and the broker epoch (KIP-380), 3 the leader epoch of each partition (KIP-570), 4 controllers
of KRaft, which are ignored. `ixion.replica.control` does the work.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.between_brokers import BetweenBrokers
from ixion.apis.call import Call, Handle
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k05_stop_replica import StopReplicaRequest, StopReplicaResponse


def make(services: Services) -> Handle:
    control = services.control
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> StopReplicaResponse:
        if not brokers.admits(call, "StopReplica"):
            return StopReplicaResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, partition_errors=())
        return await control.stop_replica(cast(StopReplicaRequest, call.body))

    return in_own_task(handle)
