"""DescribeGroups (15), versions 0 to 6: the state and the members of classic groups.

A group that does not exist is Dead without an error up to version 5, and GROUP_ID_NOT_FOUND from 6 on (KIP-1043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, appended, sorted_out
from ixion.broker.apis.operations import group_operations
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k15_describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"groups": once()}

NOT_FOUND_FROM: Final = 6


def make(services: Services) -> Handle:
    admin = services.groups.admin

    def describe(group_id: str, version: int, with_operations: bool, rights: Rights | None) -> Steps[DescribedGroup]:
        found = yield from admin.describe(group_id)
        if version < NOT_FOUND_FROM and found.error_message is not None:
            code = found.error_code
            known = ErrorCode.NONE if code == ErrorCode.GROUP_ID_NOT_FOUND else code
            found = found.replace(error_code=known, error_message=None)
        if with_operations and found.error_code == ErrorCode.NONE:
            found = found.replace(authorized_operations=group_operations(rights, group_id))
        return found

    def handle(call: Call) -> Steps[DescribeGroupsResponse]:
        request = cast(DescribeGroupsRequest, call.body)
        groups: list[DescribedGroup] = []
        for group_id in request.groups:
            groups.append(
                (yield from describe(group_id, call.version, request.include_authorized_operations, call.rights))
            )
            yield
        return DescribeGroupsResponse(groups=tuple(groups))

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(DescribeGroupsRequest, call.body)
    kept, others = yield from sorted_out(request.groups, lambda group: rights.may(DESCRIBE, GROUP, group))
    if others:
        call.narrow(request.replace(groups=tuple(kept)))
        refused = [
            DescribedGroup(
                error_code=NO_GROUP, group_id=group, group_state="", protocol_type="", protocol_data="", members=()
            )
            for group in others
        ]
        call.amend = appended("groups", refused)
    return None


RIGHTS: Final = guard
