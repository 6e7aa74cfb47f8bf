"""DescribeCluster, 0 to 2: id, controller and brokers of the cluster, and the client's authorized operations on it.

Version 1 brought the type of endpoint (KIP-919): our controllers have no listener of their own, so a request for
controllers gets an error. Version 2 can include fenced brokers (KIP-1073); our registered brokers are never fenced.
Addresses are those of the client's listener.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.leaders import addresses
from ixion.broker.apis.operations import NOT_ASKED, cluster_operations
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

RIGHTS: Final = EVERYBODY  # Metadata also lists the brokers; the operations are the client's own

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
                error_message=f"this is the endpoint of a broker; endpoint type {kind} is not supported",
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
