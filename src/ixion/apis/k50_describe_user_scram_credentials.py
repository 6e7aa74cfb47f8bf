"""DescribeUserScramCredentials, 0: no user has SCRAM credentials here (see AlterUserScramCredentials).

Without names the answer is empty. A named user does not exist, or is named twice; the codes are Kafka's.
"""

from __future__ import annotations

from collections import Counter
from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ixion.timer.turns import Steps, map_steps


def make(_services: Services) -> Handle:
    def handle(call: Call) -> Steps[DescribeUserScramCredentialsResponse]:
        request = cast(DescribeUserScramCredentialsRequest, call.body)
        times: Counter[str] = Counter()
        for user in request.users or ():
            times[user.name] += 1
            yield
        results = yield from map_steps(result, times.items())
        return DescribeUserScramCredentialsResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            error_message="",
            results=tuple(results),
        )

    return sliced(handle)


def result(counted: tuple[str, int]) -> DescribeUserScramCredentialsResult:
    user, times = counted
    if times > 1:
        code, message = ErrorCode.DUPLICATE_RESOURCE, f"user '{user}' is in the request more than once"
    else:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, f"user '{user}' has no SCRAM credentials"
    return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=message, credential_infos=())
