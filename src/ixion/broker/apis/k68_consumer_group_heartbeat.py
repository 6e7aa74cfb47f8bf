"""ConsumerGroupHeartbeat (68), versions 0 and 1: the one request between a member and its consumer group (KIP-848).

In version 0 the broker generates the id of a new member; in version 1 members choose it, and may subscribe by a
pattern, which the broker resolves (RE2 syntax; it must match the whole name of a topic, internal topics included). The
response is sent when the changes are in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP, READ, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.group.caller import Caller
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {
    "subscribed_topic_names": once(),
    "topic_partitions": once("topic_id", partitions=NUMBERS),
}


def make(services: Services) -> Handle:
    consumer = services.groups.consumer

    def handle(call: Call) -> Later:
        caller = Caller(version=call.version, client_id=call.client_id, host=f"/{call.address}", rights=call.rights)
        consumer.heartbeat(cast(ConsumerGroupHeartbeatRequest, call.body), caller, call.respond)
        return LATER

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """READ on the group, DESCRIBE on each named topic. A pattern matches only topics that the member may describe."""
    request = cast(ConsumerGroupHeartbeatRequest, call.body)
    if not rights.may(READ, GROUP, request.group_id):
        return refused_heartbeat(NO_GROUP)
    for name in request.subscribed_topic_names or ():
        if not rights.may(DESCRIBE, TOPIC, name):
            return refused_heartbeat(NO_TOPIC)
        yield
    return None


RIGHTS: Final = guard


def refused_heartbeat(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=code.explanation, member_epoch=0, heartbeat_interval_ms=0
    )
