"""ReadShareGroupStateSummary (87), versions 0 and 1: where share partitions start, and what is complete behind.

Version 1 has the number of complete records behind the start (KIP-1226). A start of -1: nothing has been fetched yet.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Handle
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.share_state import Answered, Shape, brokers_only, serve
from ixion.broker.coordinators.share.coordinator import Summary
from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k87_read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from ixion.language.protocol.notation import Struct

REPEATS: Final = {"topics": once("topic_id", partitions=once("partition"))}


def fault(partition: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(
        partition=partition,
        error_code=code,
        state_epoch=0,
        leader_epoch=0,
        start_offset=0,
    )


SHAPE: Final = Shape(
    fault,
    lambda topic_id, lines: ReadStateSummaryResult(topic_id=topic_id, partitions=lines),
    lambda topics: ReadShareGroupStateSummaryResponse(results=topics),
)
RIGHTS: Final = brokers_only(SHAPE)


def make(services: Services) -> Handle:
    shares = services.shares

    def act(key: SharePartitionKey, asked: Struct, done: Answered) -> None:
        part = cast(PartitionData, asked)

        def summarized(code: ErrorCode, found: Summary | None) -> None:
            if found is None:
                done(fault(part.partition, code))
                return
            result = PartitionResult(
                partition=part.partition,
                error_code=code,
                state_epoch=found.state_epoch,
                leader_epoch=found.leader_epoch,
                start_offset=found.start_offset,
                delivery_complete_count=found.complete_count,
            )
            done(result)

        shares.summary(key, summarized)

    return serve(services, SHAPE, act)
