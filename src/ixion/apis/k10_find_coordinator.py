"""FindCoordinator, 0-6: the broker that coordinates a group or a transactional id.

Version 0 is for groups only, 1 brought the type of key, 4 many keys in one request (KIP-699), 5 a code that is never
needed here, 6 share groups (KIP-932), which we do not coordinate: INVALID_REQUEST. The coordinator of a key is the
leader of its partition of the internal topic; the first request creates the topic. Addresses are those of the client's
listener.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, cast

from ixion.apis.call import Call, Handle, Outcome
from ixion.apis.controller_calls import translated
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k10_find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ixion.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from ixion.timer.turns import Steps, in_turns

TOPICS: Final = {0: GROUP_OFFSETS, 1: TRANSACTION_STATE}
MANY_KEYS_SINCE: Final = 4


def make(services: Services) -> Handle:
    image = services.image
    topics = services.internal_topics

    def handle(call: Call) -> Outcome | Awaitable[Outcome]:
        request = cast(FindCoordinatorRequest, call.body)
        name = TOPICS.get(request.key_type)
        if name is not None and name not in image.topics:
            return creating(call)
        return many(call) if call.version >= MANY_KEYS_SINCE else answer_one(call)

    async def create_and_answer(call: Call) -> FindCoordinatorResponse:
        request = cast(FindCoordinatorRequest, call.body)
        try:
            await translated(topics[TOPICS[request.key_type]].ensure())
        except KafkaError:
            pass  # then there is no leader, and the response has COORDINATOR_NOT_AVAILABLE
        return await in_turns(find_all(call)) if call.version >= MANY_KEYS_SINCE else answer_one(call)

    creating = in_own_task(create_and_answer)

    def find_all(call: Call) -> Steps[FindCoordinatorResponse]:
        request = cast(FindCoordinatorRequest, call.body)
        found: list[Coordinator] = []
        for key in request.coordinator_keys:
            found.append(find(request.key_type, key, call.listener))
            yield
        return FindCoordinatorResponse(coordinators=tuple(found))

    many = sliced(find_all)

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
        partition = image.partition(name, topics[name].partition_for(key))
        broker = None if partition is None else image.brokers.get(partition.leader)
        address = None if broker is None else broker.endpoints.get(listener)
        if broker is None or address is None:
            return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the partition of {name} has no leader yet")
        host, port = address
        return Coordinator(key=key, node_id=broker.broker_id, host=host, port=port, error_code=0, error_message=None)

    return handle


def _nobody(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
