"""GetTelemetrySubscriptions, 0: the broker wants no metrics from clients (KIP-714).

As in Kafka without a metrics plugin, ApiVersions does not list this API, so clients do not send it. A client that does
send it gets an id, an empty subscription, and the time after which to ask again.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID, new_id
from ixion.language.protocol.messages.k71_get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

RIGHTS: Final = EVERYBODY

SUBSCRIPTION: Final = 0  # id of the empty subscription
INTERVAL_MS: Final = 300_000
MAX_BYTES: Final = 1_048_576
COMPRESSION_TYPES: Final = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy, in Kafka's order of preference


def make(_services: Services) -> Handle:
    def handle(call: Call) -> GetTelemetrySubscriptionsResponse:
        request = cast(GetTelemetrySubscriptionsRequest, call.body)
        client = request.client_instance_id
        return GetTelemetrySubscriptionsResponse(
            error_code=ErrorCode.NONE,
            client_instance_id=new_id() if client == ZERO_ID else client,
            subscription_id=SUBSCRIPTION,
            accepted_compression_types=COMPRESSION_TYPES,
            push_interval_ms=INTERVAL_MS,
            telemetry_max_bytes=MAX_BYTES,
            delta_temporality=True,
            requested_metrics=(),
        )

    return handle
