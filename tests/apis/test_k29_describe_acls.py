from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions


def test_without_an_authorizer_security_is_disabled(asking: Asking) -> None:
    for version in versions(ApiKey.DESCRIBE_ACLS):
        request = DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        answer = asking.ask(request, DescribeAclsResponse, version)
        assert (answer.error_code, answer.resources) == (ErrorCode.SECURITY_DISABLED, ())
        assert "authorizer" in (answer.error_message or "")
