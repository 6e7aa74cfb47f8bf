"""UpdateMetadata, 0 to 8: the controller sends the brokers, partitions and leaders of the cluster.

Version 1 brought several endpoints of a broker, 2 racks, 3 names of listeners, 4 offline replicas, 5 topics and the
broker epoch (KIP-380), 7 topic ids (KIP-516), 8 controllers of KRaft, which are ignored. `ixion.replica.control` does
the work.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.between_brokers import BetweenBrokers
from ixion.apis.call import Call, Handle
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k06_update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def make(services: Services) -> Handle:
    control = services.control
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> UpdateMetadataResponse:
        if not brokers.admits(call, "UpdateMetadata"):
            return UpdateMetadataResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return await control.update_metadata(cast(UpdateMetadataRequest, call.body))

    return in_own_task(handle)
