"""The fetch requests of a follower to one leader, in a fetch session: after the first they name only changes.

    requests.next([wish, …], 500, 1)     session 0, epoch 0: a new session, all partitions
    requests.answered(7, 0)              the leader made session 7
    requests.next(…)                     session 7, epoch 1: partitions that are new, have advanced or were removed

After any fault the next request begins a new session, because a partition that the leader left out by mistake would
never be fetched again. A leader that has no room for a session answers with session 0, and gets full requests.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

Place = tuple[bytes, int]  # topic id and partition
REPLICA_STATE_SINCE: Final = 15
OLDEST: Final = 13  # the first version with topic ids
NEWEST: Final = 17  # Apache Kafka 3.9
LAST_EPOCH: Final = 2**31 - 1
SESSION_ENDED: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FetchLimits(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int


class FetchRequests:
    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._session_id = 0
        self._epoch = 0
        self._known: dict[Place, FetchPartition] = {}  # what the leader knows of this session

    def next(
        self, wishes: dict[Place, FetchPartition], limits: FetchLimits, broker_epoch: int, version: int
    ) -> FetchRequest:
        known = self._known
        changed = {place: wish for place, wish in wishes.items() if known.get(place) is not wish}
        forgotten = [place for place in known if place not in wishes]
        self._known = wishes
        by_state = version >= REPLICA_STATE_SINCE
        return FetchRequest(
            replica_id=-1 if by_state else self._node_id,
            replica_state=ReplicaState(replica_id=self._node_id, replica_epoch=broker_epoch)
            if by_state
            else ReplicaState(),
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=tuple(
                FetchTopic(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in grouped(changed).items()
            ),
            forgotten_topics_data=tuple(
                ForgottenTopic(
                    topic_id=topic_id, partitions=tuple(number for each, number in forgotten if each == topic_id)
                )
                for topic_id in dict.fromkeys(topic_id for topic_id, _ in forgotten)
            ),
        )

    def answered(self, session_id: int, code: int) -> None:
        """Note the leader's answer to the last request."""
        if code != ErrorCode.NONE or session_id == 0 or (self._session_id and session_id != self._session_id):
            self.start_over()
            return
        self._session_id = session_id
        self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def start_over(self) -> None:
        """Begin a new session with the next request."""
        self._session_id = 0
        self._epoch = 0
        self._known = {}


def grouped(wishes: dict[Place, FetchPartition]) -> dict[bytes, list[FetchPartition]]:
    topics: dict[bytes, list[FetchPartition]] = {}
    for (topic_id, _), wish in wishes.items():
        topics.setdefault(topic_id, []).append(wish)
    return topics
