"""DeleteAcls, 1 to 3: SECURITY_DISABLED for each filter, as there is no authorizer (see DescribeAcls)."""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.k29_describe_acls import NO_AUTHORIZER
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k31_delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def make(_services: Services) -> Handle:
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=()
    )

    def handle(call: Call) -> DeleteAclsResponse:
        request = cast(DeleteAclsRequest, call.body)
        return DeleteAclsResponse(throttle_time_ms=0, filter_results=(refused,) * len(request.filters))

    return handle
