"""AlterClientQuotas, 0 to 1: refused, entry by entry, because the broker throttles no client yet.

UNSUPPORTED_VERSION is what clients show as "not supported by this broker", with the message.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntryData,
)

NO_QUOTAS: Final = "ixion has no client quotas; nothing was changed"


def make(_services: Services) -> Handle:
    def handle(call: Call) -> AlterClientQuotasResponse:
        request = cast(AlterClientQuotasRequest, call.body)
        return AlterClientQuotasResponse(
            throttle_time_ms=0,
            entries=tuple(
                ResponseEntryData(
                    error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NO_QUOTAS, entity=entry.entity
                )
                for entry in request.entries
            ),
        )

    return handle
