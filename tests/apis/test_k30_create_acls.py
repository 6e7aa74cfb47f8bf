from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k30_create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions


def test_each_rule_is_refused_also_one_that_is_repeated(asking: Asking) -> None:
    """Results have no names: the first is that of the first rule, so there must be one for each."""
    rule = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3)
    for version in versions(ApiKey.CREATE_ACLS):
        answer = asking.ask(CreateAclsRequest(creations=(rule,) * 3), CreateAclsResponse, version)
        assert [each.error_code for each in answer.results] == [ErrorCode.SECURITY_DISABLED] * 3
        assert all("authorizer" in (each.error_message or "") for each in answer.results)
