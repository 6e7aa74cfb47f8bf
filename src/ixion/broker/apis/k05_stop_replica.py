"""StopReplica, 0 to 4: the controller sends the replicas to stop, and which of them to delete.

Version 1 brought topics and the broker epoch (KIP-380), 3 the leader epoch of each partition (KIP-570), 4 controllers
of KRaft, which are ignored. `replica.control` does the work.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION
from ixion.broker.apis.between_brokers import BetweenBrokers
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest, StopReplicaResponse

REPEATS: Final = {
    "ungrouped_partitions": once("topic_name", "partition_index"),
    "topics": once("name", partition_indexes=NUMBERS),
    "topic_states": once("topic_name", partition_states=once("partition_index")),
}
RIGHTS: Final = refused_with(CLUSTER_ACTION, StopReplicaResponse(error_code=NO_CLUSTER, partition_errors=()))


def make(services: Services) -> Handle:
    control = services.control
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> StopReplicaResponse:
        if not brokers.admits(call, "StopReplica"):
            return StopReplicaResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, partition_errors=())
        return await control.stop_replica(cast(StopReplicaRequest, call.body))

    return handle
