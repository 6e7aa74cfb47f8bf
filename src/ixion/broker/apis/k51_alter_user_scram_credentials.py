"""AlterUserScramCredentials, 0: set and delete the SCRAM credentials of users.

If one change of a user is refused, none of that user's changes is made. The client sends the salted password, so the
slow part of SCRAM is done there. The codes are Kafka's: UNACCEPTABLE_CREDENTIAL for an empty name or iterations out of
range, DUPLICATE_RESOURCE for a repeated user and mechanism, RESOURCE_NOT_FOUND if there is nothing to delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, cast

from ixion.broker.acl.numbers import ALTER
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import translated
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.scram_mechanisms import BY_NUMBER
from ixion.broker.apis.services import Services
from ixion.broker.metadata import paths
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ixion.language.protocol.notation import Struct
from ixion.language.sasl.scram import LEAST_ITERATIONS, MOST_ITERATIONS, credential_of
from ixion.timer.turns import Steps, map_steps

REPEATS: Final = {
    "deletions": twice("name", "mechanism"),
    "upsertions": twice("name", "mechanism"),
}

MOST_USERS: Final = 1_000  # in one request: each is a change of the metadata

Change = ScramCredentialDeletion | ScramCredentialUpsertion


def make(services: Services) -> Handle:
    configs = services.controller.configs

    async def handle(call: Call) -> AlterUserScramCredentialsResponse:
        request = cast(AlterUserScramCredentialsRequest, call.body)
        wanted: dict[str, list[Change]] = {}
        for deletion in request.deletions:
            wanted.setdefault(deletion.name, []).append(deletion)
        for upsertion in request.upsertions:
            wanted.setdefault(upsertion.name, []).append(upsertion)
        results = []
        for user, changes in wanted.items():
            code, message = ErrorCode.NONE, None
            try:
                if len(wanted) > MOST_USERS:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, f"{len(wanted)} users in one request; {MOST_USERS} are allowed"
                    )
                check(user, changes)
                await translated(configs.alter("users", paths.sanitized(user), partial(changed, changes=changes)))
            except KafkaError as error:
                code, message = error.code, error.message
            results.append(AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message))
        return AlterUserScramCredentialsResponse(results=tuple(results))

    return handle


def check(user: str, changes: list[Change]) -> None:
    if not user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of the user is empty")
    mechanisms = [change.mechanism for change in changes]
    if len(set(mechanisms)) < len(mechanisms):
        raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, "a user and mechanism is in the request more than once")
    for change in changes:
        if change.mechanism not in BY_NUMBER:
            raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no SCRAM mechanism {change.mechanism}")
        if isinstance(change, ScramCredentialUpsertion):
            if not LEAST_ITERATIONS <= change.iterations <= MOST_ITERATIONS:
                text = f"{change.iterations} iterations; {LEAST_ITERATIONS} to {MOST_ITERATIONS} are allowed"
                raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
            if not change.salt or not change.salted_password:
                raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a credential needs a salt and a salted password")


def changed(config: dict[str, str], changes: list[Change]) -> Mapping[str, str]:
    for change in changes:
        mechanism = BY_NUMBER[change.mechanism]
        if isinstance(change, ScramCredentialUpsertion):
            salt, salted = bytes(change.salt), bytes(change.salted_password)
            config[mechanism] = credential_of(mechanism, salted, salt, change.iterations).text()
        elif config.pop(mechanism, None) is None:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"the user has no {mechanism} credential")
    return config


def _refused_credentials(request: AlterUserScramCredentialsRequest, _version: int) -> Steps[Struct]:
    users = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    lines = yield from map_steps(
        lambda user: AlterUserScramCredentialsResult(
            user=user, error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation
        ),
        users,
    )
    return AlterUserScramCredentialsResponse(results=tuple(lines))


RIGHTS: Final = in_cluster(ALTER, _refused_credentials)
