"""AlterClientQuotas, 0 to 1: refused, entry by entry, because the broker throttles no client yet.

UNSUPPORTED_VERSION is what clients show as "not supported by this broker", with the message.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    ResponseEntryData,
)
from ixion.timer.turns import Steps, map_steps

NO_QUOTAS: Final = "ixion has no client quotas; nothing was changed"


def make(_services: Services) -> Handle:
    def refuse(entry: EntryData) -> ResponseEntryData:
        return ResponseEntryData(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NO_QUOTAS, entity=entry.entity)

    def handle(call: Call) -> Steps[AlterClientQuotasResponse]:
        request = cast(AlterClientQuotasRequest, call.body)
        entries = yield from map_steps(refuse, request.entries)
        return AlterClientQuotasResponse(throttle_time_ms=0, entries=tuple(entries))

    return sliced(handle)
