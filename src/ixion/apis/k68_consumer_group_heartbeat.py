"""ConsumerGroupHeartbeat (68), versions 0 and 1: all that a member and its group say to each other (KIP-848).

Version 0 leaves it to the broker to name a new member; in version 1 members name themselves, and may subscribe by a
pattern, which the broker resolves (the syntax of RE2; it matches whole names of topics, internal ones included).
The answer comes when what changed is in the log.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.coordinators.group.caller import Caller
from ixion.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.wire.answer import LATER, Later


def make(services: Services) -> Handle:
    consumer = services.groups.consumer

    def handle(call: Call) -> Later:
        caller = Caller(version=call.version, client_id=call.client_id, host=f"/{call.address}", rights=call.rights)
        consumer.heartbeat(cast(ConsumerGroupHeartbeatRequest, call.body), caller, call.respond)
        return LATER

    return handle
