"""LeaveGroup (13), versions 0 to 5: members leave, or are removed by an administrator.

Up to version 2 one member leaves, and its code is that of the response; from 3 several may leave, static ones also by
instance id alone (KIP-345). The reason of version 5 is logged by the broker (KIP-800).
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import in_group
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import Later
from ixion.timer.turns import Steps

REPEATS: Final = {"members": twice("member_id", "group_instance_id")}
RIGHTS: Final = in_group(lambda code, _: LeaveGroupResponse(error_code=code))

SEVERAL_FROM: Final = 3


def make(services: Services) -> Handle:
    classic = services.groups.classic

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(LeaveGroupRequest, call.body)
        if call.version < SEVERAL_FROM:
            codes = classic.leave(request.group_id, [MemberIdentity(member_id=request.member_id)])
            return LeaveGroupResponse(error_code=codes[0] if isinstance(codes, list) else codes)
        codes = classic.leave(request.group_id, request.members)
        if isinstance(codes, ErrorCode):
            return LeaveGroupResponse(error_code=codes)
        left: list[MemberResponse] = []
        for leaving, code in zip(request.members, codes, strict=True):
            left.append(
                MemberResponse(
                    member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=code
                )
            )
            yield
        return LeaveGroupResponse(error_code=ErrorCode.NONE, members=tuple(left))

    return handle
