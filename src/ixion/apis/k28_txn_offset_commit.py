"""TxnOffsetCommit, 0-5: a group's offsets as a part of a transaction; nobody sees them before it commits.

The transaction must hold the group's partition of `__consumer_offsets`: clients before version 5 have announced it
(AddOffsetsToTxn) and are refused if not, from version 5 on (KIP-890) the commit itself adds it. Version 3 brought
member id and generation (KIP-447), by which a member that was replaced is refused; 4 the code TRANSACTION_ABORTABLE.
Before version 2 COORDINATOR_LOAD_IN_PROGRESS is told as COORDINATOR_NOT_AVAILABLE, which those clients retry.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.coordinators.group.commits import Committer, Wanted
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ixion.replica.internal_topic import GROUP_OFFSETS
from ixion.wire.answer import LATER, Later


def make(services: Services) -> Handle:
    groups = services.groups
    transactions = services.transactions
    image = services.image
    offsets = services.internal_topics[GROUP_OFFSETS]

    def handle(call: Call) -> Later:
        request = cast(TxnOffsetCommitRequest, call.body)
        every = [(topic.name, each) for topic in request.topics for each in topic.partitions]
        wanted = [
            Wanted(
                (name, each.partition_index),
                each.committed_offset,
                each.committed_leader_epoch,
                each.committed_metadata,
            )
            for name, each in every
            if image.partition(name, each.partition_index) is not None
        ]

        def verified(code: ErrorCode) -> None:
            if code:
                committed([code] * len(wanted))
                return
            committer = Committer(
                request.group_id,
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                request.producer_id,
                request.producer_epoch,
            )
            groups.commit_transactional(committer, wanted, committed)

        def committed(codes: list[ErrorCode]) -> None:
            told = dict(zip([each.partition for each in wanted], codes, strict=True))
            call.respond(_answer(call.version, request, told))

        if not wanted:
            committed([])
        elif not request.group_id:
            committed([ErrorCode.INVALID_GROUP_ID] * len(wanted))
        else:
            transactions.verify_offset_commit(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                (GROUP_OFFSETS, offsets.partition_for(request.group_id)),
                call.version,
                verified,
            )
        return LATER

    return handle


def _answer(
    version: int, request: TxnOffsetCommitRequest, told: dict[tuple[str, int], ErrorCode]
) -> TxnOffsetCommitResponse:
    def code_of(name: str, number: int) -> ErrorCode:
        code = told.get((name, number), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if version < 2 and code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return code

    return TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code_of(topic.name, each.partition_index)
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
