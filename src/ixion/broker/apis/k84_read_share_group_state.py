"""ReadShareGroupState (84), version 0: a leader reads the state of its share partitions.

Its leader epoch is stored, so that an older leader can no longer write; -1 only reads. A share partition that was never
initialized gets UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Handle
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.share_state import Answered, Shape, brokers_only, serve
from ixion.broker.replica.share_persister import SharePartitionKey, ShareState
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k84_read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from ixion.language.protocol.notation import Struct

REPEATS: Final = {"topics": once("topic_id", partitions=once("partition"))}


def fault(partition: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(
        partition=partition,
        error_code=code,
        state_epoch=0,
        start_offset=0,
        state_batches=(),
    )


SHAPE: Final = Shape(
    fault,
    lambda topic_id, lines: ReadStateResult(topic_id=topic_id, partitions=lines),
    lambda topics: ReadShareGroupStateResponse(results=topics),
)
RIGHTS: Final = brokers_only(SHAPE)


def make(services: Services) -> Handle:
    shares = services.shares

    def act(key: SharePartitionKey, asked: Struct, done: Answered) -> None:
        part = cast(PartitionData, asked)

        def read(code: ErrorCode, state: ShareState | None) -> None:
            if state is None:
                done(fault(key.partition, code))
                return
            batches = tuple(
                StateBatch(
                    first_offset=first, last_offset=last, delivery_state=kind, delivery_count=deliveries, due_ms=due_ms
                )
                for first, last, kind, deliveries, due_ms in state.batches
            )
            found = PartitionResult(
                partition=key.partition,
                error_code=ErrorCode.NONE,
                state_epoch=state.state_epoch,
                start_offset=state.start_offset,
                state_batches=batches,
            )
            done(found)

        shares.read(key, part.leader_epoch, read)

    return serve(services, SHAPE, act)
