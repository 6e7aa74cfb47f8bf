"""TxnOffsetCommit, 0-6: commit a group's offsets as part of a transaction; readers see them once it commits.

The transaction must contain the group's partition of `__consumer_offsets`: before version 5 clients must have added it
(AddOffsetsToTxn); from version 5 on (KIP-890) the commit itself adds it. Version 3 brought member id and generation
(KIP-447), so that a replaced member is refused; 4 the code TRANSACTION_ABORTABLE; 6, of Kafka 4.4, topics by id, and
the codes GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319).
Before version 2 COORDINATOR_LOAD_IN_PROGRESS becomes COORDINATOR_NOT_AVAILABLE, which those clients retry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ixion.broker.acl.numbers import GROUP, READ, TOPIC, TRANSACTIONAL_ID, WRITE
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import Guard
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_ID, NO_TOPIC, refused_topics, trim_topics
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.topic_ids import TXN_OFFSET_COMMIT_BY_ID_SINCE
from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.replica.internal_topic import GROUP_OFFSETS
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("name", "topic_id", partitions=once("partition_index"))}


def make(services: Services) -> Handle:
    groups = services.groups
    transactions = services.transactions
    image = services.image
    offsets = services.internal_topics[GROUP_OFFSETS]

    def name_of(version: int, topic: TxnOffsetCommitRequestTopic) -> str | None:
        """None: there is no topic of that id."""
        if version < TXN_OFFSET_COMMIT_BY_ID_SINCE:
            return topic.name
        found = image.ids.get(topic.topic_id)
        return None if found is None else found.name

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(TxnOffsetCommitRequest, call.body)
        wanted: list[Wanted] = []
        names: list[str | None] = []  # by topic, before anything is awaited: a topic may be deleted meanwhile
        for topic in request.topics:
            name = name_of(call.version, topic)
            names.append(name)
            for each in topic.partitions:
                if name is not None and image.partition(name, each.partition_index) is not None:
                    wanted.append(
                        Wanted(
                            (name, each.partition_index),
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
                request.generation_id_or_member_epoch,
                request.producer_id,
                request.producer_epoch,
                knows_epochs=call.version >= TXN_OFFSET_COMMIT_BY_ID_SINCE,
            )
            groups.commit_transactional(committer, wanted, committed)

        def committed(codes: list[ErrorCode]) -> None:
            known = dict(zip([each.partition for each in wanted], codes, strict=True))
            respond_in_turns(call, answer(call.version, request, names, known))

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


def answer(
    version: int,
    request: TxnOffsetCommitRequest,
    names: Sequence[str | None],
    known: dict[TopicPartition, ErrorCode],
) -> Steps[TxnOffsetCommitResponse]:
    topics: list[TxnOffsetCommitResponseTopic] = []
    for topic, name in zip(request.topics, names, strict=True):
        partitions: list[TxnOffsetCommitResponsePartition] = []
        for each in topic.partitions:
            number = each.partition_index
            code = ErrorCode.UNKNOWN_TOPIC_ID
            if name is not None:
                code = known.get((name, number), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if version < 2 and code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            partitions.append(TxnOffsetCommitResponsePartition(partition_index=number, error_code=code))
            yield
        topics.append(answered(topic, tuple(partitions)))
        yield
    return TxnOffsetCommitResponse(topics=tuple(topics))


def answered(topic: Any, lines: tuple[TxnOffsetCommitResponsePartition, ...]) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=lines)


def make_guard(services: Services) -> Guard:
    image = services.image

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        """WRITE on the transactional id, READ on the group and on each topic."""
        request = cast(TxnOffsetCommitRequest, call.body)
        code = ErrorCode.NONE
        if not rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
            code = NO_ID
        elif not rights.may(READ, GROUP, request.group_id):
            code = NO_GROUP

        def keep(topic: Any) -> bool:
            name = topic.name
            if call.version >= TXN_OFFSET_COMMIT_BY_ID_SINCE:
                known = image.ids.get(topic.topic_id)
                if known is None:
                    return True  # UNKNOWN_TOPIC_ID
                name = known.name
            return rights.may(READ, TOPIC, name)

        if code == ErrorCode.NONE:
            yield from trim_topics(
                call,
                keep,
                lambda each: TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=NO_TOPIC
                ),
                answered,
            )
            return None
        topics = yield from refused_topics(
            request.topics,
            lambda each: TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code),
            answered,
        )
        return TxnOffsetCommitResponse(topics=cast(tuple[TxnOffsetCommitResponseTopic, ...], tuple(topics)))

    return guard
