"""Fetch, 4 to 18: batches from offsets on, waiting up to max_wait_ms (ten minutes at most) for min_bytes.

A client that asks from the middle of a batch gets the whole batch. The broker's fetch.max.bytes caps a consumer's
max_bytes; the first batch comes whole in any case. At read_committed (4) the answer lists aborted transactions. Version
5 brought the log start, 7 sessions (KIP-227), 9 the leader epoch, 11 the rack and a preferred replica (never another
one here: rack_id is read and this replica preferred), 12 the last epoch fetched and where histories diverge (KIP-595),
13 topic ids (KIP-516), 15 the replica's state (KIP-903), 16 where to go instead (KIP-951), 17 directory ids and 18
high watermarks of followers, which are read over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from ixion.apis.call import Call, Handle, Outcome
from ixion.apis.fetch_session import (
    FIRST_EPOCH,
    NO_SESSION,
    Cached,
    FetchSession,
    FetchSessions,
    Place,
)
from ixion.apis.leaders import addresses, leader_of
from ixion.apis.services import Services
from ixion.config.dynamic import DynamicConfig
from ixion.config.network_settings import FETCH_MAX_BYTES, MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from ixion.log.reader import Isolation
from ixion.metadata.image import ClusterImage
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k01_fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ixion.replica.fetch import FetchTerms
from ixion.replica.fetch_result import FetchResult, FetchWish
from ixion.replica.manager import ReplicaManager
from ixion.wire.answer import LATER

IDS_SINCE: Final = 13
LEADER_SINCE: Final = 16
REPLICA_STATE_SINCE: Final = 15
# A client that has sent much ahead is not noticed to be gone. So nobody waits longer than an idle connection may.
LONGEST_WAIT_MS: Final = 600_000
DEBUGGER: Final = -2  # a consumer that may read up to the log end
UNKNOWN: Final = ""  # the name of a topic whose id is not known

_NO_LEADER: Final = LeaderIdAndEpoch()
_NO_DIVERGENCE: Final = EpochEndOffset()
_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def make(services: Services) -> Handle:
    return Fetch(services).handle


class Fetch:
    def __init__(self, services: Services) -> None:
        self._image: Final[ClusterImage] = services.image
        self._replicas: Final[ReplicaManager] = services.replicas
        self._config: Final[DynamicConfig] = services.config
        self._clock_ms: Final[Callable[[], int]] = services.clock_ms
        self.sessions: Final = FetchSessions(services.config.current[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS])

    def handle(self, call: Call) -> Outcome:
        request = cast(FetchRequest, call.body)
        replica = request.replica_state.replica_id if call.version >= REPLICA_STATE_SINCE else request.replica_id
        session: FetchSession | None = None
        incremental = False
        if request.session_epoch > FIRST_EPOCH:
            session = self.sessions.get(request.session_id)
            fault = check_session(session, request, call.version)
            if fault != ErrorCode.NONE:
                return FetchResponse(throttle_time_ms=0, error_code=int(fault), responses=())
            assert session is not None
            self._update(session, request)
            places = list(session.partitions.items())
            if places:
                incremental = True
                session.advance()  # now, not when it is answered: whoever comes with this epoch again is too late
            else:
                self.sessions.remove(session.id)
                session = None
        else:
            if request.session_id != NO_SESSION:
                self.sessions.remove(request.session_id)
            places = self._all_of(request.topics, call.version >= IDS_SINCE)
            if request.session_epoch == FIRST_EPOCH:
                session = self._new_session(places, call.version >= IDS_SINCE, replica >= 0)
        if replica >= 0 or replica == DEBUGGER:
            isolation = Isolation.LOG_END
        else:
            isolation = Isolation.COMMITTED if request.isolation_level == 1 else Isolation.HIGH_WATERMARK
        max_bytes = request.max_bytes
        if replica < 0:
            max_bytes = min(max_bytes, self._config.current[FETCH_MAX_BYTES])
        terms = FetchTerms(
            replica_id=replica,
            max_wait_ms=min(request.max_wait_ms, LONGEST_WAIT_MS),
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            isolation=isolation,
        )
        fetching = Fetching(self, call, session, incremental, places)
        wishes = [cached.wish for _, cached in places if cached.wish.topic]
        self._replicas.read(terms, wishes, fetching.finish, call.on_gone)
        return fetching.outcome()

    # Sessions.

    def _all_of(self, topics: tuple[FetchTopic, ...], by_id: bool) -> list[tuple[Place, Cached]]:
        found: list[tuple[Place, Cached]] = []
        for topic in topics:
            name = self._name(topic.topic_id, topic.topic, by_id)
            found += [
                (place_of(topic, each.partition, by_id), Cached(wish_of(name, topic, each, by_id)))
                for each in topic.partitions
            ]
        return found

    def _name(self, topic_id: bytes, name: str, by_id: bool) -> str:
        if not by_id:
            return name
        known = self._image.ids.get(topic_id)
        return UNKNOWN if known is None else known.name

    def _new_session(self, places: list[tuple[Place, Cached]], by_id: bool, privileged: bool) -> FetchSession | None:
        if not places:
            return None
        session = self.sessions.create(by_id, privileged, len(places), self._clock_ms())
        if session is not None:
            session.partitions = dict(places)
        return session

    def _update(self, session: FetchSession, request: FetchRequest) -> None:
        session.used_ms = self._clock_ms()
        for topic in request.topics:
            name = self._name(topic.topic_id, topic.topic, session.by_id)
            for partition in topic.partitions:
                place = place_of(topic, partition.partition, session.by_id)
                wish = wish_of(name, topic, partition, session.by_id)
                cached = session.partitions.get(place)
                if cached is None:
                    session.partitions[place] = Cached(wish)
                else:
                    cached.wish = wish
        for forgotten in request.forgotten_topics_data:
            for number in forgotten.partitions:
                session.partitions.pop(forgotten_place(forgotten, number, session.by_id), None)
        for place, cached in session.partitions.items():
            if not cached.wish.topic:  # its topic was not known; it may be now
                cached.wish.topic = self._name(place[0], UNKNOWN, True)
                cached.wish.key = (cached.wish.topic, cached.wish.number)

    # Answers.

    def answer(
        self,
        call: Call,
        session: FetchSession | None,
        incremental: bool,
        places: list[tuple[Place, Cached]],
        results: list[FetchResult],
    ) -> FetchResponse:
        topics: list[FetchableTopicResponse] = []
        elsewhere: set[int] = set()
        parts: list[PartitionData] = []
        current: Place | None = None
        slot = 0
        size = 0
        gave: list[tuple[Place, Cached]] = []
        for place, cached in places:
            wish = cached.wish
            if wish.topic:
                result = results[slot]
                slot += 1
            else:
                result = FetchResult(wish)
                result.code = ErrorCode.UNKNOWN_TOPIC_ID if place[0] else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if session is not None:
                news = note(cached, result)
                if result.records:
                    gave.append((place, cached))
                if incremental and not news:
                    continue
            if current is None or current[0] != place[0] or current[1] != place[1]:
                if current is not None:
                    topics.append(grouped(current, parts))
                current = place
                parts = []
            size += len(result.records)
            parts.append(self._partition(call.version, result, elsewhere))
        if current is not None:
            topics.append(grouped(current, parts))
        counters = self._replicas.counters
        counters.fetches += 1
        counters.bytes_out += size
        session_id = NO_SESSION
        if session is not None:
            session_id = session.id
            for place, cached in gave:
                if session.partitions.pop(place, None) is not None:
                    session.partitions[place] = cached
        if not elsewhere:
            return FetchResponse(throttle_time_ms=0, session_id=session_id, responses=tuple(topics))
        return FetchResponse(
            throttle_time_ms=0,
            session_id=session_id,
            responses=tuple(topics),
            node_endpoints=tuple(
                [
                    NodeEndpoint(node_id=number, host=host, port=port, rack=rack)
                    for number, host, port, rack in addresses(self._image, call.listener, elsewhere)
                ]
            ),
        )

    def _partition(self, version: int, result: FetchResult, elsewhere: set[int]) -> PartitionData:
        leader = _NO_LEADER
        if result.code != ErrorCode.NONE:
            self._replicas.counters.fetch_failed(result.code)
            if version >= LEADER_SINCE and result.code in _ELSEWHERE:
                broker, epoch = leader_of(self._image, result.wish.topic, result.wish.number)
                leader = LeaderIdAndEpoch(leader_id=broker, leader_epoch=epoch)
                elsewhere.add(broker)
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


class Fetching:
    """One fetch on its way; `finish` may come before `handle` has returned, or after a wait."""

    def __init__(
        self,
        fetch: Fetch,
        call: Call,
        session: FetchSession | None,
        incremental: bool,
        places: list[tuple[Place, Cached]],
    ) -> None:
        self._fetch = fetch
        self._call = call
        self._session = session
        self._incremental = incremental
        self._places = places
        self._epoch = session.epoch if session is not None else FIRST_EPOCH
        self._results: list[FetchResult] | None = None
        self._later = False

    def finish(self, results: list[FetchResult]) -> None:
        self._results = results
        if self._later:
            self._call.respond(cast(FetchResponse, self.outcome()))

    def outcome(self) -> Outcome:
        results = self._results
        if results is None:
            self._later = True
            self._call.release()
            return LATER
        if self._incremental and self._session is not None and self._session.epoch != self._epoch:
            # Another request has gone on with the session while this one waited.
            return FetchResponse(
                throttle_time_ms=0, error_code=int(ErrorCode.INVALID_FETCH_SESSION_EPOCH), responses=()
            )
        return self._fetch.answer(self._call, self._session, self._incremental, self._places, results)


def check_session(session: FetchSession | None, request: FetchRequest, version: int) -> ErrorCode:
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.by_id != (version >= IDS_SINCE):
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    if session.epoch != request.session_epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return ErrorCode.NONE


def note(cached: Cached, result: FetchResult) -> bool:
    """Keep what is answered; True if any of it is news to the client."""
    news = (
        len(result.records) > 0
        or result.high_watermark != cached.high_watermark
        or result.log_start != cached.log_start
        or result.preferred_replica >= 0
        or result.diverging_epoch >= 0
    )
    if result.code != ErrorCode.NONE:
        cached.high_watermark = -1  # whatever comes next is news
        return True
    cached.high_watermark = result.high_watermark
    cached.log_start = result.log_start
    return news


def grouped(place: Place, parts: list[PartitionData]) -> FetchableTopicResponse:
    if place[0]:
        return FetchableTopicResponse(topic_id=place[0], partitions=tuple(parts))
    return FetchableTopicResponse(topic=place[1], partitions=tuple(parts))


def place_of(topic: FetchTopic, number: int, by_id: bool) -> Place:
    return (topic.topic_id, "", number) if by_id else (b"", topic.topic, number)


def forgotten_place(topic: ForgottenTopic, number: int, by_id: bool) -> Place:
    return (topic.topic_id, "", number) if by_id else (b"", topic.topic, number)


def wish_of(name: str, topic: FetchTopic, partition: FetchPartition, by_id: bool) -> FetchWish:
    return FetchWish(
        name,
        topic.topic_id if by_id else b"",
        partition.partition,
        partition.fetch_offset,
        partition.partition_max_bytes,
        partition.current_leader_epoch,
        partition.last_fetched_epoch,
        partition.log_start_offset,
    )
