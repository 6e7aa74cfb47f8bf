"""DescribeCluster, 0 to 2: id, controller and brokers of the cluster, and what the client may do with it.

Version 1 brought the kind of endpoint (KIP-919): controllers have no listener of their own here, so a client that asks
for one gets an error. Version 2 asks for fenced brokers as well (KIP-1073); a broker that is registered is never
fenced. Addresses are those of the listener that the client came by.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.leaders import addresses
from ixion.apis.operations import NOT_ASKED, cluster_operations
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


def make(services: Services) -> Handle:
    image = services.image

    def handle(call: Call) -> DescribeClusterResponse:
        request = cast(DescribeClusterRequest, call.body)
        kind = request.endpoint_type
        if kind != BROKERS:
            code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if kind == CONTROLLERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            return DescribeClusterResponse(
                error_code=code,
                error_message=f"this endpoint is a broker's; endpoints of type {kind} are not here",
                endpoint_type=BROKERS,
                cluster_id="",
                brokers=(),
            )
        return DescribeClusterResponse(
            error_code=ErrorCode.NONE,
            endpoint_type=BROKERS,
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            brokers=tuple(
                DescribeClusterBroker(broker_id=number, host=host, port=port, rack=rack, is_fenced=False)
                for number, host, port, rack in addresses(image, call.listener, set(image.brokers))
            ),
            cluster_authorized_operations=cluster_operations(call.rights)
            if request.include_cluster_authorized_operations
            else NOT_ASKED,
        )

    return handle
