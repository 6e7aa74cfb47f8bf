"""Heartbeat (12), versions 0 to 4: a member of a classic group shows that it is alive.

With REBALANCE_IN_PROGRESS it must join again. From version 3 static members send their instance id (KIP-345).
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import in_group
from ixion.broker.apis.services import Services
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

RIGHTS: Final = in_group(lambda code, _: HeartbeatResponse(error_code=code))


def make(services: Services) -> Handle:
    classic = services.groups.classic

    def handle(call: Call) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=classic.heartbeat(cast(HeartbeatRequest, call.body)))

    return handle
