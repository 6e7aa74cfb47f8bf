"""SyncGroup (14), versions 0 to 5: the leader sends the assignment, the other members get theirs.

From version 3 static members send their instance id (KIP-345), from 5 a member sends the protocol that it expects
(KIP-559). The response is sent when the assignment is in the log.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import in_group
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.group.classic.answers import sync_error
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from ixion.language.wire.answer import LATER, Later

REPEATS: Final = {"assignments": once("member_id")}
RIGHTS: Final = in_group(lambda code, _: sync_error(code))

PROTOCOL_NAMED_FROM: Final = 5


def make(services: Services) -> Handle:
    classic = services.groups.classic

    def handle(call: Call) -> Later | SyncGroupResponse:
        request = cast(SyncGroupRequest, call.body)
        if call.version >= PROTOCOL_NAMED_FROM and (request.protocol_type is None or request.protocol_name is None):
            return sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        classic.sync(request, call.respond)
        call.wait_for_others()
        return LATER

    return handle
