"""OffsetForLeaderEpoch, 2 to 4: the end offset of a leader epoch in the log.

A consumer uses it to detect that the log was truncated below its position (KIP-320); a follower to find where to
truncate. If nothing was written in the epoch, the response is about the largest one below it; -1 and -1 mean that none
is known. Version 3 brought the replica id: only the leader serves consumers (-1) and followers, any replica serves a
debugging client (-2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION, DESCRIBE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_TOPIC, on_topics
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("topic", partitions=once("partition"))}

DEBUGGING: Final = -2


def make(services: Services) -> Handle:
    replicas = services.replicas

    def handle(call: Call) -> Steps[OffsetForLeaderEpochResponse]:
        request = cast(OffsetForLeaderEpochRequest, call.body)
        leader_only = call.version < 3 or request.replica_id != DEBUGGING
        topics = []
        for topic in request.topics:
            found = []
            for wish in topic.partitions:
                found.append(find(topic.topic, wish, leader_only))
                yield
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(found)))
        return OffsetForLeaderEpochResponse(topics=tuple(topics))

    def find(topic: str, wish: OffsetForLeaderPartition, leader_only: bool) -> EpochEndOffset:
        partition = replicas.partition(topic, wish.partition)
        if partition is None:
            return EpochEndOffset(error_code=replicas.why_missing(topic, wish.partition), partition=wish.partition)
        fault = partition.fault(wish.current_leader_epoch, leader_only)
        if fault != ErrorCode.NONE:
            return EpochEndOffset(error_code=fault, partition=wish.partition)
        log = partition.log
        with log.lock:
            epoch, end = log.epochs.end_offset(wish.leader_epoch, log.end_offset)
        return EpochEndOffset(error_code=ErrorCode.NONE, partition=wish.partition, leader_epoch=epoch, end_offset=end)

    return handle


_leader_epochs_of_clients = on_topics(
    DESCRIBE,
    lambda wish: EpochEndOffset(error_code=NO_TOPIC, partition=wish.partition),
    lambda topic, lines: OffsetForLeaderTopicResult(topic=topic.topic, partitions=lines),
    name="topic",
)


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on each topic; followers (CLUSTER_ACTION) may ask about every topic."""
    if not rights.sees_in_cluster(CLUSTER_ACTION):
        yield from _leader_epochs_of_clients(call, rights)
    return None


RIGHTS: Final = guard
