"""Compares positions with the log of a new leader (KIP-320, OffsetForLeaderEpoch)."""

from __future__ import annotations

from collections.abc import Callable

from ixion.clients.core.connection import Outcome, Pending
from ixion.clients.core.consumer.subscription import Assigned
from ixion.clients.faults import error_code
from ixion.clients.metadata import Partition, TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

Take = Callable[[Assigned, int, ErrorCode, int, float], None]


class Validation(Pending):
    def __init__(self, take: Take, asked: list[tuple[Assigned, Partition]]) -> None:
        """`take` gets each partition with its leader's epoch, an error code and the end offset."""
        self._take = take
        self._asked = {state.place: (state, state.version, partition.leader_epoch) for state, partition in asked}

    def complete(self, outcome: Outcome, now_s: float) -> None:
        found: dict[TopicPartition, tuple[ErrorCode, int]] = {}
        if isinstance(outcome, OffsetForLeaderEpochResponse):
            for topic in outcome.topics:
                for part in topic.partitions:
                    place = TopicPartition(topic.topic, part.partition)
                    found[place] = (error_code(part.error_code), part.end_offset)
        fallen = outcome.code if isinstance(outcome, KafkaError) else ErrorCode.UNKNOWN_LEADER_EPOCH
        for place, (state, version, leader_epoch) in self._asked.items():
            if state.version == version:
                state.is_flying = False
                code, end_offset = found.get(place, (fallen, -1))
                self._take(state, leader_epoch, code, end_offset, now_s)


def comparison(asked: list[tuple[Assigned, Partition]]) -> OffsetForLeaderEpochRequest:
    topics: dict[str, list[OffsetForLeaderPartition]] = {}
    for state, partition in asked:
        wanted = OffsetForLeaderPartition(
            partition=state.place.partition,
            current_leader_epoch=partition.leader_epoch,
            leader_epoch=state.fetch_epoch,
        )
        topics.setdefault(state.place.topic, []).append(wanted)
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=tuple([OffsetForLeaderTopic(topic=name, partitions=tuple(parts)) for name, parts in topics.items()]),
    )
