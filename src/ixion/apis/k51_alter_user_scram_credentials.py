"""AlterUserScramCredentials, 0: refused, user by user, because no listener authenticates by SCRAM yet.

Taking a password that nothing checks would be worse than none.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

NO_SCRAM: Final = "ixion does not authenticate by SCRAM; nothing was changed"


def make(_services: Services) -> Handle:
    def handle(call: Call) -> AlterUserScramCredentialsResponse:
        request = cast(AlterUserScramCredentialsRequest, call.body)
        users = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
        return AlterUserScramCredentialsResponse(
            throttle_time_ms=0,
            results=tuple(
                AlterUserScramCredentialsResult(
                    user=user, error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, error_message=NO_SCRAM
                )
                for user in users
            ),
        )

    return handle
