"""DescribeUserScramCredentials, 0: the SCRAM mechanisms and iterations of users; never their keys.

Without names the response has every user. A user that is named twice, or has no credentials, gets Kafka's error code.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, cast

from ixion.broker.acl.numbers import DESCRIBE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.scram_mechanisms import NUMBER_OF
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k50_describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ixion.timer.turns import Steps, map_steps

REPEATS: Final = {"users": twice("name")}
RIGHTS: Final = refused_with(
    DESCRIBE,
    DescribeUserScramCredentialsResponse(error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation, results=()),
)


def make(services: Services) -> Handle:
    known = services.credentials

    def result(counted: tuple[str, int]) -> DescribeUserScramCredentialsResult:
        user, times = counted
        credentials = known.users.get(user, {})
        code, message = ErrorCode.NONE, ""
        if times > 1:
            code, message = ErrorCode.DUPLICATE_RESOURCE, f"user '{user}' is in the request more than once"
        elif not credentials:
            code, message = ErrorCode.RESOURCE_NOT_FOUND, f"user '{user}' has no SCRAM credentials"
        infos = tuple(
            CredentialInfo(mechanism=NUMBER_OF[mechanism], iterations=credential.iterations)
            for mechanism, credential in credentials.items()
        )
        return DescribeUserScramCredentialsResult(
            user=user, error_code=code, error_message=message or None, credential_infos=() if message else infos
        )

    def handle(call: Call) -> Steps[DescribeUserScramCredentialsResponse]:
        request = cast(DescribeUserScramCredentialsRequest, call.body)
        times: Counter[str] = Counter()
        if not request.users:
            times.update(list(known.users))
        for user in request.users or ():
            times[user.name] += 1
            yield
        results = yield from map_steps(result, times.items())
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.NONE,
            error_message="",
            results=tuple(results),
        )

    return handle
