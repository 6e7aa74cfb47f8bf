"""PushTelemetry, 0: metrics of a client without a subscription; they are checked as in Kafka, and dropped."""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.k71_get_telemetry_subscriptions import COMPRESSION_TYPES, MAX_BYTES, SUBSCRIPTION
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k72_push_telemetry import PushTelemetryRequest, PushTelemetryResponse

RIGHTS: Final = EVERYBODY

UNCOMPRESSED: Final = 0
RESERVED: Final = (ZERO_ID, (1).to_bytes(16, "big"))


def make(_services: Services) -> Handle:
    def handle(call: Call) -> PushTelemetryResponse:
        return PushTelemetryResponse(error_code=check(cast(PushTelemetryRequest, call.body)))

    return handle


def check(request: PushTelemetryRequest) -> ErrorCode:
    if request.client_instance_id in RESERVED:
        return ErrorCode.INVALID_REQUEST
    if request.subscription_id != SUBSCRIPTION:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if request.compression_type not in (UNCOMPRESSED, *COMPRESSION_TYPES):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(request.metrics) > MAX_BYTES:
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE
