"""A fetch session with one broker (KIP-227): after the first fetch, requests name only changes.

    epoch 0   t0 at 0, t1 at 0      full: the broker answers with a session id and both partitions
    epoch 1   t0 at 5               t1 is still wanted at 0; the answer holds only partitions with news
    epoch 2   t1 at 7, forget t0    the buffer of t0 is full, so it is not fetched meanwhile

A broker without room for a session answers with id 0: then every fetch is full. After a fault the next fetch is full,
and closes the session that the broker may still have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchTopic, ForgottenTopic

SESSIONS_FROM: Final = 7  # the first version of Fetch that has sessions
NO_SESSION: Final = 0
FIRST: Final = 0
LAST_EPOCH: Final = 2**31 - 1
BROKEN: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Wanted(NamedTuple):
    """What a fetch wants of a partition."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    most_bytes: int


class FetchSession:
    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST
        self.is_flying = False  # a fetch is in flight
        self._known: dict[TopicPartition, Wanted] = {}  # what the broker knows that we want
        self._uses_ids = False

    @property
    def is_full(self) -> bool:
        """Whether the next fetch names everything."""
        return self.epoch == FIRST

    def next(
        self, wanted: Mapping[TopicPartition, Wanted], *, uses_ids: bool
    ) -> tuple[tuple[FetchTopic, ...], tuple[ForgottenTopic, ...]]:
        """What the next request must name so that the session is exactly `wanted`."""
        if uses_ids != self._uses_ids and self.epoch != FIRST:
            self.fail()
        self._uses_ids = uses_ids
        if self.epoch == FIRST:
            self._known = dict(wanted)
            return topics_of(wanted), ()
        known = self._known
        changed = {place: each for place, each in wanted.items() if known.get(place) != each}
        gone = {place: each for place, each in known.items() if place not in wanted}
        for place, each in wanted.items():
            before = known.get(place)
            if before is not None and before.topic_id != each.topic_id:
                gone[place] = before  # the topic was deleted and created again
        self._known = dict(wanted)
        return topics_of(changed), forgotten(gone)

    def answered(self, code: ErrorCode, session_id: int) -> None:
        if code in BROKEN or code != ErrorCode.NONE:
            self.fail()
            if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
        elif session_id == NO_SESSION:
            self.session_id = NO_SESSION
            self.epoch = FIRST
        elif self.epoch == FIRST or session_id == self.session_id:
            self.session_id = session_id
            self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1
        else:
            self.fail()

    def fail(self) -> None:
        self.epoch = FIRST
        self._known = {}


def topics_of(wanted: Mapping[TopicPartition, Wanted]) -> tuple[FetchTopic, ...]:
    """In the order of `wanted`: a broker fills its answer from the front."""
    topics: dict[str, list[FetchPartition]] = {}
    ids: dict[str, bytes] = {}
    for place, each in wanted.items():
        part = FetchPartition(
            partition=place.partition,
            current_leader_epoch=each.leader_epoch,
            fetch_offset=each.offset,
            partition_max_bytes=each.most_bytes,
        )
        topics.setdefault(place.topic, []).append(part)
        ids[place.topic] = each.topic_id
    return tuple(
        [FetchTopic(topic=name, topic_id=ids[name], partitions=tuple(parts)) for name, parts in topics.items()]
    )


def forgotten(gone: Mapping[TopicPartition, Wanted]) -> tuple[ForgottenTopic, ...]:
    topics: dict[tuple[str, bytes], list[int]] = {}
    for place, each in gone.items():
        topics.setdefault((place.topic, each.topic_id), []).append(place.partition)
    return tuple(
        [
            ForgottenTopic(topic=name, topic_id=topic_id, partitions=tuple(numbers))
            for (name, topic_id), numbers in topics.items()
        ]
    )


def names_by_id(wanted: Iterable[tuple[TopicPartition, Wanted]]) -> dict[bytes, str]:
    return {each.topic_id: place.topic for place, each in wanted}
