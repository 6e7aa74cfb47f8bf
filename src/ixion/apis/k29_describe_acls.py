"""DescribeAcls, 1 to 3: SECURITY_DISABLED, which is Kafka's answer where no authorizer is configured."""

from __future__ import annotations

from typing import Final

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k29_describe_acls import DescribeAclsResponse

NO_AUTHORIZER: Final = "no authorizer is configured on the broker"


def make(_services: Services) -> Handle:
    def handle(_call: Call) -> DescribeAclsResponse:
        return DescribeAclsResponse(
            throttle_time_ms=0, error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, resources=()
        )

    return handle
