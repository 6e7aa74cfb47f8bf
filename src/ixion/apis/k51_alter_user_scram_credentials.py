"""AlterUserScramCredentials, 0: refused, user by user, because no listener authenticates by SCRAM yet.

Taking a password that nothing checks would be worse than none.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ixion.timer.turns import Steps, map_steps

NO_SCRAM: Final = "ixion does not authenticate by SCRAM; nothing was changed"


def make(_services: Services) -> Handle:
    def refuse(user: str) -> AlterUserScramCredentialsResult:
        return AlterUserScramCredentialsResult(
            user=user, error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, error_message=NO_SCRAM
        )

    def handle(call: Call) -> Steps[AlterUserScramCredentialsResponse]:
        request = cast(AlterUserScramCredentialsRequest, call.body)
        users: dict[str, None] = {}
        for deletion in request.deletions:
            users[deletion.name] = None
            yield
        for upsertion in request.upsertions:
            users[upsertion.name] = None
            yield
        results = yield from map_steps(refuse, users)
        return AlterUserScramCredentialsResponse(throttle_time_ms=0, results=tuple(results))

    return sliced(handle)
