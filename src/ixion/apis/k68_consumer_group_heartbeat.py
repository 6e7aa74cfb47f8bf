"""ConsumerGroupHeartbeat (68), versions 0 and 1: the one request between a member and its consumer group (KIP-848).

In version 0 the broker generates the id of a new member; in version 1 members choose it, and may subscribe by a
pattern, which the broker resolves (RE2 syntax; it must match the whole name of a topic, internal topics included). The
response is sent when the changes are in the log.
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
