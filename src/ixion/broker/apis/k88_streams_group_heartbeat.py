"""StreamsGroupHeartbeat (88), version 0: the one request between a member and its streams group (KIP-1071).

Members choose their ids, and send the topology of their application when they join. If internal topics are missing, the
broker makes them with the rights of the client, and the response waits for that: the first one finds a group that is
ready. (Kafka responds at once, and the next heartbeat finds them.) With streams.version 0: UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import CREATE, DESCRIBE, GROUP, READ, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC
from ixion.broker.apis.repeats import as_sent, once
from ixion.broker.apis.services import Services
from ixion.broker.apis.streams_topics import InternalTopics
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.streams.configure import listed
from ixion.broker.coordinators.group.streams.states import StatusCode
from ixion.broker.coordinators.group.streams.topology import names_of
from ixion.broker.coordinators.group.streams_protocol import Beat, refusal
from ixion.language.protocol.messages.k88_streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, in_turns

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {
    "active_tasks": once("subtopology_id", partitions=once()),
    "standby_tasks": once("subtopology_id", partitions=once()),
    "warmup_tasks": once("subtopology_id", partitions=once()),
    "client_tags": once("key"),
    "task_offsets": as_sent(),
    "task_end_offsets": as_sent(),
}


def make(services: Services) -> Handle:
    streams = services.groups.streams
    topics = InternalTopics(services)

    async def beat(request: StreamsGroupHeartbeatRequest, caller: Caller) -> Beat:
        answered: asyncio.Future[Beat] = asyncio.get_running_loop().create_future()

        def respond(made: Beat) -> None:
            if not answered.done():
                answered.set_result(made)

        streams.heartbeat(request, caller, respond)
        return await answered

    async def handle(call: Call) -> StreamsGroupHeartbeatResponse:
        request = cast(StreamsGroupHeartbeatRequest, call.body)
        caller = Caller(version=call.version, client_id=call.client_id, host=f"/{call.address}", rights=call.rights)
        answer, missing = await beat(request, caller)
        if missing:
            rights = call.rights
            forbidden = [] if rights is None else [each.name for each in missing if not may_create(rights, each.name)]
            if forbidden:
                answer = explained(answer, f"Unauthorized to CREATE on topics {listed(forbidden)}.")
            else:
                fault = await topics.ensure(request.group_id, missing, call.charge)
                again = await beat(request, caller)
                if again.answer.error_code == 0:
                    answer = again.answer
                answer = explained(answer, fault)
        if answer.error_code == 0 and answer.endpoint_information_epoch != request.endpoint_information_epoch:
            found = await in_turns(streams.endpoints(request.group_id))
            answer = answer.replace(partitions_by_user_endpoint=found)
        return answer

    return handle


def may_create(rights: Rights, name: str) -> bool:
    return rights.sees_in_cluster(CREATE) or rights.may(CREATE, TOPIC, name)


def explained(answer: StreamsGroupHeartbeatResponse, why: str) -> StreamsGroupHeartbeatResponse:
    """Say why internal topics are missing."""
    if not why:
        return answer
    status = tuple(
        Status(status_code=each.status_code, status_detail=f"{each.status_detail}; {why}")
        if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        else each
        for each in answer.status or ()
    )
    return answer.replace(status=status)


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """READ on the group, DESCRIBE on each topic of the topology; the handler asks for CREATE on those that it makes."""
    request = cast(StreamsGroupHeartbeatRequest, call.body)
    if not rights.may(READ, GROUP, request.group_id):
        return refusal(NO_GROUP)
    if request.topology is not None:
        for name in names_of(request.topology):
            if not rights.may(DESCRIBE, TOPIC, name):
                return refusal(NO_TOPIC)
            yield
    return None


RIGHTS: Final = guard
