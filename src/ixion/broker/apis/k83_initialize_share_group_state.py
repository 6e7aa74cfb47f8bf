"""InitializeShareGroupState (83), version 0: begin the state of share partitions afresh.

The state epoch is the epoch of the group. A lower one than stored is refused with FENCED_STATE_EPOCH.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Handle
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.share_state import Answered, Shape, brokers_only, serve
from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k83_initialize_share_group_state import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)
from ixion.language.protocol.notation import Struct

REPEATS: Final = {"topics": once("topic_id", partitions=once("partition"))}


def fault(partition: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=code)


SHAPE: Final = Shape(
    fault,
    lambda topic_id, lines: InitializeStateResult(topic_id=topic_id, partitions=lines),
    lambda topics: InitializeShareGroupStateResponse(results=topics),
)
RIGHTS: Final = brokers_only(SHAPE)


def make(services: Services) -> Handle:
    shares = services.shares

    def act(key: SharePartitionKey, asked: Struct, done: Answered) -> None:
        part = cast(PartitionData, asked)
        shares.initialize(key, part.state_epoch, part.start_offset, lambda code: done(fault(key.partition, code)))

    return serve(services, SHAPE, act)
