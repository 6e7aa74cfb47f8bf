"""FindCoordinator, 0-6: the broker that coordinates a group or a transactional id.

Version 0 is for groups only, 1 brought the type of key, 4 many keys in one request (KIP-699), 5 a code that is never
needed here, 6 share partitions (KIP-932), by group:topic id:partition. The coordinator of a key is the
leader of its partition of the internal topic; the first request creates the topic. Addresses are those of the client's
listener.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION, DESCRIBE, GROUP, TRANSACTIONAL_ID
from ixion.broker.apis.call import Call, Handle, Work
from ixion.broker.apis.controller_calls import translated
from ixion.broker.apis.guards.shapes import NO_CLUSTER, NO_GROUP, appended, sorted_out
from ixion.broker.apis.repeats import as_sent
from ixion.broker.apis.services import Services
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, SHARE_STATE, TRANSACTION_STATE
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ID_SIZE, id_from_text
from ixion.language.protocol.messages.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, in_turns, map_steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"coordinator_keys": as_sent()}

SHARE: Final = 2
TOPICS: Final = {0: GROUP_OFFSETS, 1: TRANSACTION_STATE, SHARE: SHARE_STATE}
SHARE_SINCE: Final = 6
MANY_KEYS_SINCE: Final = 4
NO_TYPE: Final = -1


def make(services: Services) -> Handle:
    image = services.image
    topics = services.internal_topics

    def handle(call: Call) -> Work:
        request = cast(FindCoordinatorRequest, call.body)
        name = TOPICS.get(request.key_type)
        if request.key_type == SHARE and (call.version < SHARE_SINCE or not services.groups.share.is_enabled):
            name = None
            call.narrow(request.replace(key_type=NO_TYPE))
        if name is not None and name not in image.topics:
            return create_and_answer(call)
        return find_all(call) if call.version >= MANY_KEYS_SINCE else answer_one(call)

    async def create_and_answer(call: Call) -> FindCoordinatorResponse:
        request = cast(FindCoordinatorRequest, call.body)
        try:
            await translated(topics[TOPICS[request.key_type]].ensure())
        except KafkaError:
            pass  # then there is no leader, and the response has COORDINATOR_NOT_AVAILABLE
        return await in_turns(find_all(call)) if call.version >= MANY_KEYS_SINCE else answer_one(call)

    def find_all(call: Call) -> Steps[FindCoordinatorResponse]:
        request = cast(FindCoordinatorRequest, call.body)
        found: list[Coordinator] = []
        for key in request.coordinator_keys:
            found.append(find(request.key_type, key, call.listener))
            yield
        return FindCoordinatorResponse(coordinators=tuple(found))

    def answer_one(call: Call) -> FindCoordinatorResponse:
        request = cast(FindCoordinatorRequest, call.body)
        one = find(request.key_type, request.key, call.listener)
        return FindCoordinatorResponse(
            error_code=one.error_code,
            error_message=one.error_message,
            node_id=one.node_id,
            host=one.host,
            port=one.port,
        )

    def find(key_type: int, key: str, listener: str) -> Coordinator:
        name = TOPICS.get(key_type)
        if name is None:
            return _nobody(key, ErrorCode.INVALID_REQUEST, f"no coordinator for keys of type {key_type}")
        if key_type == SHARE and not is_share_key(key):
            return _nobody(key, ErrorCode.INVALID_REQUEST, "the key is not group:topic id:partition")
        partition = image.partition(name, topics[name].partition_for(key))
        broker = None if partition is None else image.brokers.get(partition.leader)
        address = None if broker is None else broker.endpoints.get(listener)
        if broker is None or address is None:
            return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the partition of {name} has no leader yet")
        host, port = address
        return Coordinator(key=key, node_id=broker.broker_id, host=host, port=port, error_code=0, error_message=None)

    return handle


def is_share_key(key: str) -> bool:
    """`group:topic id:partition`, with the id as 22 characters of base64; the group may contain colons."""
    group, _, rest = key.rpartition(":")[0].rpartition(":")
    number = key.rpartition(":")[2]
    try:
        return bool(group) and len(id_from_text(rest)) == ID_SIZE and number.isascii() and number.isdigit()
    except ValueError:
        return False


def _nobody(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the group or on the transactional id. Brokers look for share coordinators: CLUSTER_ACTION."""
    request = cast(FindCoordinatorRequest, call.body)
    if request.key_type == SHARE and not rights.may_in_cluster(CLUSTER_ACTION):
        text = NO_CLUSTER.explanation
        lines = yield from map_steps(
            lambda key: Coordinator(key=key, node_id=-1, host="", port=-1, error_code=NO_CLUSTER, error_message=text),
            request.coordinator_keys,
        )
        return FindCoordinatorResponse(
            error_code=NO_CLUSTER, error_message=text, node_id=-1, host="", port=-1, coordinators=tuple(lines)
        )
    kinds = {0: (GROUP, NO_GROUP), 1: (TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)}
    if request.key_type not in kinds:
        return None
    kind, code = kinds[request.key_type]
    if call.version < MANY_KEYS_SINCE:
        if rights.may(DESCRIBE, kind, request.key):
            return None
        return FindCoordinatorResponse(error_code=code, error_message=code.explanation, node_id=-1, host="", port=-1)
    kept, others = yield from sorted_out(request.coordinator_keys, lambda key: rights.may(DESCRIBE, kind, key))
    if others:
        refused = [
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=code.explanation)
            for key in others
        ]
        if not kept:
            return FindCoordinatorResponse(coordinators=tuple(refused))
        call.narrow(request.replace(coordinator_keys=tuple(kept)))
        call.amend = appended("coordinators", refused)
    return None


RIGHTS: Final = guard
