from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions


def test_each_filter_is_refused(asking: Asking) -> None:
    wanted = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    for version in versions(ApiKey.DELETE_ACLS):
        answer = asking.ask(DeleteAclsRequest(filters=(wanted,) * 2), DeleteAclsResponse, version)
        found = [(each.error_code, each.matching_acls) for each in answer.filter_results]
        assert found == [(ErrorCode.SECURITY_DISABLED, ())] * 2
