"""TxnOffsetCommit, 0-5: commit a group's offsets as part of a transaction; readers see them once it commits.

The transaction must contain the group's partition of `__consumer_offsets`: before version 5 clients must have added it
(AddOffsetsToTxn); from version 5 on (KIP-890) the commit itself adds it. Version 3 brought member id and generation
(KIP-447), so that a replaced member is refused; 4 the code TRANSACTION_ABORTABLE.
Before version 2 COORDINATOR_LOAD_IN_PROGRESS becomes COORDINATOR_NOT_AVAILABLE, which those clients retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import GROUP, READ, TOPIC, TRANSACTIONAL_ID, WRITE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_ID, NO_TOPIC, refused_topics, trim_topics
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.sliced import respond_in_turns, sliced
from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.replica.internal_topic import GROUP_OFFSETS
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("name", partitions=once("partition_index"))}


def make(services: Services) -> Handle:
    groups = services.groups
    transactions = services.transactions
    image = services.image
    offsets = services.internal_topics[GROUP_OFFSETS]

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(TxnOffsetCommitRequest, call.body)
        wanted: list[Wanted] = []
        for topic in request.topics:
            for each in topic.partitions:
                if image.partition(topic.name, each.partition_index) is not None:
                    wanted.append(
                        Wanted(
                            (topic.name, each.partition_index),
                            each.committed_offset,
                            each.committed_leader_epoch,
                            each.committed_metadata,
                        )
                    )
                yield
            yield

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
            known = dict(zip([each.partition for each in wanted], codes, strict=True))
            respond_in_turns(call, answer(call.version, request, known))

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

    return sliced(handle)


def answer(
    version: int, request: TxnOffsetCommitRequest, known: dict[TopicPartition, ErrorCode]
) -> Steps[TxnOffsetCommitResponse]:
    topics: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        partitions: list[TxnOffsetCommitResponsePartition] = []
        for each in topic.partitions:
            number = each.partition_index
            code = known.get((topic.name, number), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if version < 2 and code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            partitions.append(TxnOffsetCommitResponsePartition(partition_index=number, error_code=code))
            yield
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(partitions)))
        yield
    return TxnOffsetCommitResponse(topics=tuple(topics))


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """WRITE on the transactional id, READ on the group and on each topic."""
    request = cast(TxnOffsetCommitRequest, call.body)
    code = ErrorCode.NONE
    if not rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        code = NO_ID
    elif not rights.may(READ, GROUP, request.group_id):
        code = NO_GROUP
    if code == ErrorCode.NONE:
        yield from trim_topics(
            call,
            lambda topic: rights.may(READ, TOPIC, topic.name),
            lambda each: TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=NO_TOPIC),
            lambda topic, lines: TxnOffsetCommitResponseTopic(name=topic.name, partitions=lines),
        )
        return None
    topics = yield from refused_topics(
        request.topics,
        lambda each: TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code),
        lambda topic, lines: TxnOffsetCommitResponseTopic(name=topic.name, partitions=lines),
    )
    return TxnOffsetCommitResponse(topics=cast(tuple[TxnOffsetCommitResponseTopic, ...], tuple(topics)))


RIGHTS: Final = guard
