"""ApiVersions, 0 to 5: the API keys and versions that we serve, and the features of the cluster.

The response header is version 0 in every version, because a client must be able to read it before it knows the
versions. A version that is too new gets UNSUPPORTED_VERSION in version 0, with this API as its only entry (KIP-511);
`dispatch` does that. Version 3 brought the name of the client's software (checked as in Kafka) and features (KIP-584);
version 4 lets supported features start at level 0. With version 5, of Kafka 4.4, a client says which cluster and which
broker it means to reach: if it has reached another, it gets REBOOTSTRAP_REQUIRED (KIP-1242).
"""

from __future__ import annotations

import re
from sys import intern
from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.features import SUPPORTED
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.served import SERVED
from ixion.broker.apis.services import Services
from ixion.config.cluster_settings import ZOOKEEPER_CONNECT
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ixion.language.protocol.registry import ApiKey

RIGHTS: Final = EVERYBODY

# Served, but not listed: telemetry, as in Kafka without a plugin, so that clients do not send it; and requests whose
# senders do not ask for versions: those of a controller, and ControlledShutdown.
UNLISTED: Final = frozenset(
    {
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
    }
)
# Listed only if there may be other brokers (with ZooKeeper), which ask for versions before they send these.
BETWEEN_BROKERS: Final = frozenset({ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS})
LONGEST: Final = 100  # characters that are kept of a name; equal names of many connections are one object
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def make(services: Services) -> Handle:
    image = services.image
    hidden = UNLISTED if services.config.current[ZOOKEEPER_CONNECT] else UNLISTED | BETWEEN_BROKERS
    keys = tuple(
        ApiVersion(api_key=int(key), min_version=key.advertised_from, max_version=key.newest)
        for key in SERVED
        if key not in hidden
    )

    # By whether features may start at level 0: the response, and the features that it was made from.
    made: dict[bool, tuple[dict[str, int], int, ApiVersionsResponse]] = {}

    def handle(call: Call) -> ApiVersionsResponse:
        request = cast(ApiVersionsRequest, call.body)
        if call.version >= 3 and not (
            _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
        ):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
        if (request.cluster_id is not None and request.cluster_id != services.cluster_id) or (
            request.node_id >= 0 and request.node_id != services.node_id
        ):
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED, api_keys=())
        connection = call.request.connection
        connection.client_id = intern(call.client_id[:LONGEST])
        if call.version >= 3:
            software = f"{request.client_software_name} {request.client_software_version}"
            connection.software = intern(software[:LONGEST])
        # Before version 4, clients fail at a feature with minimum level 0; Kafka leaves such features out.
        from_zero = call.version >= 4
        known = made.get(from_zero)
        if known is not None and known[0] == image.features and known[1] == image.features_epoch:
            return known[2]
        answer = ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=keys,
            supported_features=tuple(
                SupportedFeatureKey(name=name, min_version=low, max_version=high)
                for name, (low, high) in SUPPORTED.items()
                if low > 0 or from_zero
            ),
            finalized_features_epoch=image.features_epoch,
            finalized_features=tuple(
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in image.features.items()
                if level > 0
            ),
        )
        made[from_zero] = (dict(image.features), image.features_epoch, answer)
        return answer

    return handle


def too_new() -> ApiVersionsResponse:
    api = ApiKey.API_VERSIONS
    own = ApiVersion(api_key=int(api), min_version=api.oldest, max_version=api.newest)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own,))
