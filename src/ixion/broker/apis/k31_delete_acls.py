"""DeleteAcls, 1 to 3: delete the ACL rules that match filters. Needs ALTER on the cluster.

The response has, for each filter in the order of the request, the rules that it removed; a rule that several filters
match is listed for the first. SECURITY_DISABLED if no authorizer is configured (see DescribeAcls).
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import ALTER
from ixion.broker.apis.acl_filters import filter_of
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster
from ixion.broker.apis.k29_describe_acls import NO_AUTHORIZER
from ixion.broker.apis.repeats import as_sent
from ixion.broker.apis.services import Services
from ixion.language.model.acl_binding import Binding, Filter
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k31_delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

REPEATS: Final = {"filters": as_sent()}

MOST_FILTERS: Final = 1_000  # in one request: each is compared with every rule


def make(services: Services) -> Handle:
    acls = services.acls

    async def handle(call: Call) -> DeleteAclsResponse:
        request = cast(DeleteAclsRequest, call.body)
        assert acls is not None
        if len(request.filters) > MOST_FILTERS:
            line = refused(KafkaError(ErrorCode.INVALID_REQUEST, f"a request may have at most {MOST_FILTERS} filters"))
            return DeleteAclsResponse(filter_results=(line,) * len(request.filters))
        wanted = [checked(each) for each in request.filters]
        removed = iter(await acls.delete([each for each in wanted if isinstance(each, Filter)]))
        return DeleteAclsResponse(
            filter_results=tuple(
                result_of(next(removed)) if isinstance(each, Filter) else refused(each) for each in wanted
            ),
        )

    def refuse(call: Call) -> DeleteAclsResponse:
        line = refused(KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER))
        return DeleteAclsResponse(filter_results=(line,) * len(cast(DeleteAclsRequest, call.body).filters))

    return refuse if acls is None else handle


def checked(asked: DeleteAclsFilter) -> Filter | KafkaError:
    try:
        return filter_of(asked)
    except KafkaError as error:
        return error


def refused(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.message, matching_acls=())


def result_of(removed: dict[Binding, KafkaError | None]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=ErrorCode.NONE,
        error_message=None,
        matching_acls=tuple(
            DeleteAclsMatchingAcl(
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
                resource_type=resource.kind,
                resource_name=resource.name,
                pattern_type=resource.pattern,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for (resource, entry), error in removed.items()
        ),
    )


def _refused_deletions(request: DeleteAclsRequest, _version: int) -> Steps[Struct]:
    yield
    line = DeleteAclsFilterResult(error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation, matching_acls=())
    return DeleteAclsResponse(filter_results=(line,) * len(request.filters))


RIGHTS: Final = in_cluster(ALTER, _refused_deletions)
