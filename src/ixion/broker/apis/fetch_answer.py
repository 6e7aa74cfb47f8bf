"""Builds the response to a fetch, partition by partition, in the order of the request."""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion.broker.apis.fetch_session import NO_SESSION, Cached, FetchSession, Place
from ixion.broker.apis.leaders import addresses, leader_of
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.results import FetchResult
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

LEADER_SINCE: Final = 16
_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
# The very default objects of the table: the codec omits them without comparing field by field.
_NO_DIVERGENCE: Final[EpochEndOffset] = PartitionData.blank().diverging_epoch
_NO_LEADER: Final[LeaderIdAndEpoch] = PartitionData.blank().current_leader


class FetchAnswer:
    """Partitions are added in the order of the request."""

    def __init__(
        self,
        image: ClusterImage,
        replicas: ReplicaManager,
        listener: str,
        version: int,
        session: FetchSession | None,
        incremental: bool,
    ) -> None:
        self._image = image
        self._replicas = replicas
        self._counters = replicas.counters
        self._listener = listener
        self._version = version
        self._session = session
        self._incremental = incremental  # only partitions with changes are in the response
        self._topics: list[FetchableTopicResponse] = []
        self._parts: list[PartitionData] = []  # of the topic at `_at`
        self._at: Place | None = None
        self._elsewhere: set[int] = set()
        self._size = 0
        self._gave: list[tuple[Place, Cached]] = []

    def add(self, place: Place, cached: Cached, result: FetchResult) -> None:
        if self._session is not None:
            news = note(cached, result)
            if result.records:
                self._gave.append((place, cached))
            if self._incremental and not news:
                return
        at = self._at
        if at is None or at[0] != place[0] or at[1] != place[1]:
            if at is not None:
                self._topics.append(grouped(at, self._parts))
            self._at = place
            self._parts = []
        self._size += len(result.records)
        self._parts.append(self._partition(result))

    def response(self) -> FetchResponse:
        if self._at is not None:
            self._topics.append(grouped(self._at, self._parts))
        self._counters.fetches += 1
        self._counters.bytes_out += self._size
        session = self._session
        session_id = NO_SESSION
        if session is not None:
            session_id = session.id
            session.move_to_end(self._gave)
        if not self._elsewhere:
            return FetchResponse(session_id=session_id, responses=tuple(self._topics))
        return FetchResponse(
            session_id=session_id,
            responses=tuple(self._topics),
            node_endpoints=tuple(
                [
                    NodeEndpoint(node_id=number, host=host, port=port, rack=rack)
                    for number, host, port, rack in addresses(self._image, self._listener, self._elsewhere)
                ]
            ),
        )

    def _partition(self, result: FetchResult) -> PartitionData:
        leader = _NO_LEADER
        if result.code != ErrorCode.NONE:
            self._counters.fetch_failed(result.code)
            if self._version >= LEADER_SINCE and result.code in _ELSEWHERE:
                broker, epoch = leader_of(self._image, self._replicas, result.wish.topic, result.wish.number)
                leader = LeaderIdAndEpoch(leader_id=broker, leader_epoch=epoch)
                self._elsewhere.add(broker)
        divergence = _NO_DIVERGENCE
        if result.diverging_epoch >= 0:
            divergence = EpochEndOffset(epoch=result.diverging_epoch, end_offset=result.diverging_end)
        aborted = result.aborted
        return PartitionData(
            partition_index=result.wish.number,
            error_code=int(result.code),
            high_watermark=result.high_watermark,
            last_stable_offset=result.last_stable_offset,
            log_start_offset=result.log_start,
            diverging_epoch=divergence,
            current_leader=leader,
            aborted_transactions=None
            if aborted is None
            else tuple(
                [AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in aborted]
            ),
            preferred_read_replica=result.preferred_replica,
            records=result.records,
        )


def note(cached: Cached, result: FetchResult) -> bool:
    """Store in the session what the client gets; True if any of it is new to the client."""
    news = (
        len(result.records) > 0
        or result.high_watermark != cached.high_watermark
        or result.log_start != cached.log_start
        or result.preferred_replica >= 0
        or result.diverging_epoch >= 0
    )
    if result.code != ErrorCode.NONE:
        cached.high_watermark = -1  # so the next result counts as new
        return True
    cached.high_watermark = result.high_watermark
    cached.log_start = result.log_start
    return news


def grouped(place: Place, parts: list[PartitionData]) -> FetchableTopicResponse:
    if place[0]:
        return FetchableTopicResponse(topic_id=place[0], partitions=tuple(parts))
    return FetchableTopicResponse(topic=place[1], partitions=tuple(parts))
