"""UpdateMetadata, 0 to 8: the controller sends the brokers, partitions and leaders of the cluster.

Version 1 brought several endpoints of a broker, 2 racks, 3 names of listeners, 4 offline replicas, 5 topics and the
broker epoch (KIP-380), 7 topic ids (KIP-516), 8 controllers of KRaft, which are ignored. `replica.control` does
the work.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION
from ixion.broker.apis.between_brokers import BetweenBrokers
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import KNOWN_REPLICAS, once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

REPEATS: Final = {
    "ungrouped_partition_states": once("topic_name", "partition_index", **KNOWN_REPLICAS),
    "topic_states": once("topic_name", "topic_id", partition_states=once("partition_index", **KNOWN_REPLICAS)),
    "live_brokers": once("id", endpoints=once("listener")),
}
RIGHTS: Final = refused_with(CLUSTER_ACTION, UpdateMetadataResponse(error_code=NO_CLUSTER))


def make(services: Services) -> Handle:
    control = services.control
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> UpdateMetadataResponse:
        if not brokers.admits(call, "UpdateMetadata"):
            return UpdateMetadataResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return await control.update_metadata(cast(UpdateMetadataRequest, call.body))

    return handle
