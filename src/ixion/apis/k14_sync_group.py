"""SyncGroup (14), versions 0 to 5: the leader hands out the assignment, the others fetch theirs.

From version 3 static members name their instance (KIP-345), from 5 a member says which protocol it believes to have
agreed on (KIP-559). The answer comes when the assignment is in the log.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.protocol.messages.k14_sync_group import SyncGroupRequest
from ixion.wire.answer import LATER, Later


def make(services: Services) -> Handle:
    members = services.groups.members

    def handle(call: Call) -> Later:
        members.sync(cast(SyncGroupRequest, call.body), call.respond)
        return LATER

    return handle
