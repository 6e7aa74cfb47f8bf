"""ConsumerGroupDescribe (69), versions 0 and 1: the state and the members of consumer groups (KIP-848).

Version 1 shows which members use the classic protocol (KIP-1099). A classic group gets GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ixion.apis.call import Call, Handle
from ixion.apis.operations import group_operations
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.acl.rights import Rights


def make(services: Services) -> Handle:
    consumer = services.groups.consumer

    def describe(group_id: str, with_operations: bool, rights: Rights | None) -> Steps[DescribedGroup]:
        found = yield from consumer.describe(group_id)
        if with_operations and found.error_code == ErrorCode.NONE:
            return found.replace(authorized_operations=group_operations(rights, group_id))
        return found

    def handle(call: Call) -> Steps[ConsumerGroupDescribeResponse]:
        request = cast(ConsumerGroupDescribeRequest, call.body)
        groups: list[DescribedGroup] = []
        for group_id in request.group_ids:
            groups.append((yield from describe(group_id, request.include_authorized_operations, call.rights)))
            yield
        return ConsumerGroupDescribeResponse(groups=tuple(groups))

    return sliced(handle)
