"""CreateAcls, 1 to 3: SECURITY_DISABLED for each rule, as there is no authorizer (see DescribeAcls)."""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.k29_describe_acls import NO_AUTHORIZER
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k30_create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def make(_services: Services) -> Handle:
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)

    def handle(call: Call) -> CreateAclsResponse:
        request = cast(CreateAclsRequest, call.body)
        return CreateAclsResponse(throttle_time_ms=0, results=(refused,) * len(request.creations))

    return handle
