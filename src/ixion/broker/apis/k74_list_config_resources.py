"""ListConfigResources, 0 to 1: the names of resources that have settings.

Version 0 lists only subscriptions of client metrics (KIP-714), of which there are none; version 1 lists the requested
types, or all types (KIP-1142). An unknown type gets UNSUPPORTED_VERSION, as in Kafka.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import DESCRIBE_CONFIGS
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.messages.k74_list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

REPEATS: Final = {"resource_types": once()}
RIGHTS: Final = refused_with(DESCRIBE_CONFIGS, ListConfigResourcesResponse(error_code=NO_CLUSTER, config_resources=()))

KNOWN: Final = frozenset(int(kind) for kind in ResourceType)


def make(services: Services) -> Handle:
    image = services.image

    def names(kind: int) -> list[str]:
        if kind == ResourceType.TOPIC:
            return list(image.topics)
        if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
            return [str(broker) for broker in image.brokers]
        if kind == ResourceType.GROUP:
            return list(image.group_configs)
        return []

    def handle(call: Call) -> ListConfigResourcesResponse:
        request = cast(ListConfigResourcesRequest, call.body)
        if call.version == 0:
            kinds = [int(ResourceType.CLIENT_METRICS)]
        else:
            kinds = list(dict.fromkeys(request.resource_types)) or [int(kind) for kind in ResourceType]
        known = KNOWN.issuperset(kinds)
        return ListConfigResourcesResponse(
            error_code=ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION,
            config_resources=tuple(
                ConfigResource(resource_name=name, resource_type=kind) for kind in kinds for name in names(kind)
            )
            if known
            else (),
        )

    return handle
