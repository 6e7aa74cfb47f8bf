"""CreateAcls, 1 to 3: create ACL rules; each has its own result, in the order of the request. Needs ALTER on the
cluster.

A rule that already exists is no error. SECURITY_DISABLED if no authorizer is configured (see DescribeAcls).
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import ALTER
from ixion.broker.apis.acl_filters import binding_of
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster
from ixion.broker.apis.k29_describe_acls import NO_AUTHORIZER
from ixion.broker.apis.repeats import as_sent
from ixion.broker.apis.services import Services
from ixion.language.model.acl_binding import Binding
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k30_create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Pauses, Steps

# Results are in the order of the rules or filters.
REPEATS: Final = {"creations": as_sent()}

MOST_RESOURCES: Final = 1_000  # in one request: each is a change of the metadata


def make(services: Services) -> Handle:
    acls = services.acls

    async def handle(call: Call) -> CreateAclsResponse:
        request = cast(CreateAclsRequest, call.body)
        results: list[Binding | KafkaError] = []
        pauses = Pauses()
        for creation in request.creations:
            results.append(checked(creation))
            await pauses.pause()
        bindings = [each for each in results if isinstance(each, Binding)]
        assert acls is not None
        if len({binding.resource for binding in bindings}) > MOST_RESOURCES:
            text = f"a request may have rules on at most {MOST_RESOURCES} resources"
            failed = dict.fromkeys(bindings, KafkaError(ErrorCode.INVALID_REQUEST, text))
        else:
            failed = await acls.create(bindings)
        return CreateAclsResponse(
            results=tuple(
                result_of(failed.get(each)) if isinstance(each, Binding) else result_of(each) for each in results
            ),
        )

    def refuse(call: Call) -> CreateAclsResponse:
        line = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return CreateAclsResponse(results=(line,) * len(cast(CreateAclsRequest, call.body).creations))

    return refuse if acls is None else handle


def checked(creation: AclCreation) -> Binding | KafkaError:
    try:
        return binding_of(creation)
    except KafkaError as error:
        return error


def result_of(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_code=ErrorCode.NONE, error_message=None)
    return AclCreationResult(error_code=error.code, error_message=error.message)


def _refused_creations(request: CreateAclsRequest, _version: int) -> Steps[Struct]:
    yield
    line = AclCreationResult(error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation)
    return CreateAclsResponse(results=(line,) * len(request.creations))


RIGHTS: Final = in_cluster(ALTER, _refused_creations)
