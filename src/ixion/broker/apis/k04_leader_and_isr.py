"""LeaderAndIsr, 0 to 7: the controller sends the partitions that this broker leads or follows, and their leaders.

Version 1 brought is_new, 2 topics and the broker epoch (KIP-380), 3 reassignments (KIP-455), 5 topic ids (KIP-516), 6
the recovery state of a leader, 7 controllers of KRaft, which are ignored. `replica.control` does the work.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION
from ixion.broker.apis.between_brokers import BetweenBrokers
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import REPLICAS, once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse

REPEATS: Final = {
    "ungrouped_partition_states": once("topic_name", "partition_index", **REPLICAS),
    "topic_states": once("topic_name", "topic_id", partition_states=once("partition_index", **REPLICAS)),
    "live_leaders": once("broker_id"),
}
RIGHTS: Final = refused_with(
    CLUSTER_ACTION, LeaderAndIsrResponse(error_code=NO_CLUSTER, partition_errors=(), topics=())
)

BY_TOPIC_SINCE: Final = 5


def make(services: Services) -> Handle:
    control = services.control
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> LeaderAndIsrResponse:
        if not brokers.admits(call, "LeaderAndIsr"):
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return LeaderAndIsrResponse(error_code=code, partition_errors=(), topics=())
        answer = await control.leader_and_isr(cast(LeaderAndIsrRequest, call.body))
        return answer if call.version >= BY_TOPIC_SINCE else by_partition(answer)

    return handle


def by_partition(answer: LeaderAndIsrResponse) -> LeaderAndIsrResponse:
    errors = tuple(error for topic in answer.topics for error in topic.partition_errors)
    return LeaderAndIsrResponse(error_code=answer.error_code, partition_errors=errors, topics=())
