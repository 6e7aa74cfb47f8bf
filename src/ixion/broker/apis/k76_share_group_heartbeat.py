"""ShareGroupHeartbeat (76), version 1: the one request between a member and its share group (KIP-932).

Members choose their ids and subscribe by topic names. The response is sent when the changes are in the log and the
partitions that the member gets are ready to be read. With share.version 0: UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP, READ, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.share_protocol import refusal
from ixion.language.protocol.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"subscribed_topic_names": once()}


def make(services: Services) -> Handle:
    share = services.groups.share

    def handle(call: Call) -> Later:
        caller = Caller(version=call.version, client_id=call.client_id, host=f"/{call.address}", rights=call.rights)
        share.heartbeat(cast(ShareGroupHeartbeatRequest, call.body), caller, call.respond)
        return LATER

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """READ on the group, DESCRIBE on each topic."""
    request = cast(ShareGroupHeartbeatRequest, call.body)
    if not rights.may(READ, GROUP, request.group_id):
        return refusal(NO_GROUP)
    for name in request.subscribed_topic_names or ():
        if not rights.may(DESCRIBE, TOPIC, name):
            return refusal(NO_TOPIC)
        yield
    return None


RIGHTS: Final = guard
