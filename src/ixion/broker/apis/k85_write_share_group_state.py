"""WriteShareGroupState (85), versions 0 and 1: a leader stores changes of its share partitions.

Version 1 has the number of complete records behind the start (KIP-1226). An outdated leader gets
FENCED_LEADER_EPOCH or FENCED_STATE_EPOCH.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Handle
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.share_state import Answered, Shape, brokers_only, serve
from ixion.broker.replica.share_persister import SharePartitionKey, StateBatch, StateUpdate
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k85_write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from ixion.language.protocol.notation import Struct

REPEATS: Final = {
    "topics": once("topic_id", partitions=once("partition", state_batches=once("first_offset", "last_offset")))
}


def fault(partition: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=code)


SHAPE: Final = Shape(
    fault,
    lambda topic_id, lines: WriteStateResult(topic_id=topic_id, partitions=lines),
    lambda topics: WriteShareGroupStateResponse(results=topics),
)
RIGHTS: Final = brokers_only(SHAPE)


def make(services: Services) -> Handle:
    shares = services.shares

    def act(key: SharePartitionKey, asked: Struct, done: Answered) -> None:
        part = cast(PartitionData, asked)
        update = StateUpdate(
            state_epoch=part.state_epoch,
            leader_epoch=part.leader_epoch,
            start_offset=part.start_offset,
            delivery_complete_count=part.delivery_complete_count,
            batches=tuple(
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count, each.due_ms)
                for each in part.state_batches
            ),
        )
        shares.write(key, update, lambda code: done(fault(key.partition, code)))

    return serve(services, SHAPE, act)
