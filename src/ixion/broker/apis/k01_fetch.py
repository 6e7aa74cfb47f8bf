"""Fetch, 4 to 18: batches from offsets on, waiting up to max_wait_ms (ten minutes at most) for min_bytes.

A fetch from the middle of a batch gets the whole batch. The broker's fetch.max.bytes limits max_bytes, also for a
follower, because any client can claim to be one; the first batch is always returned whole. At read_committed (4) the
response lists aborted transactions. Version 5 brought the log start, 7 sessions (KIP-227), 9 the leader epoch, 11 the
rack and a preferred replica (KIP-392: `replica.selecting`; with a rack, followers serve fetches too), 12 the last
fetched epoch and the diverging epoch (KIP-595), 13 topic ids (KIP-516), 15 the replica's state (KIP-903), 16 the
current leader (KIP-951), 17 directory ids and 18 high watermarks of followers, which are ignored.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION, READ, TOPIC
from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.broker.apis.fetch_answer import FetchAnswer
from ixion.broker.apis.fetch_session import FIRST_EPOCH, NO_SESSION, Cached, FetchSession, FetchSessions, Place
from ixion.broker.apis.guards.guard import IN_HANDLER
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.apis.topic_ids import FETCH_BY_ID_SINCE
from ixion.broker.log.view import Bound
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.fetch import AT_ONCE, FetchTerms
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.config.network_settings import FETCH_MAX_BYTES, MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from ixion.language.model.delay_names import sibling_id, sibling_of
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from ixion.language.wire.answer import LATER
from ixion.timer.turns import Steps, finish

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {
    "topics": once("topic", "topic_id", partitions=once("partition")),
    "forgotten_topics_data": once("topic", "topic_id", partitions=NUMBERS),
}
RIGHTS: Final = IN_HANDLER  # READ topic; followers: CLUSTER_ACTION

logger = logging.getLogger(__name__)

REPLICA_STATE_SINCE: Final = 15
# While requests of a client are buffered, we do not read and do not notice that it has disconnected. So no fetch waits
# longer than a connection may be idle.
LONGEST_WAIT_MS: Final = 600_000
RELEASED: Final = FetchRequest(max_wait_ms=0, min_bytes=0, topics=())  # replaces a request that waits
UNKNOWN: Final = ""  # the name of a topic with an unknown id


def make(services: Services) -> Handle:
    return Fetch(services).handle


class Fetch:
    def __init__(self, services: Services) -> None:
        self.image: Final[ClusterImage] = services.image
        self.replicas: Final[ReplicaManager] = services.replicas
        self._max_bytes: Final[int] = services.config.current[FETCH_MAX_BYTES]
        self.clock_ms: Final[Callable[[], int]] = services.clock_ms
        self.sessions: Final = FetchSessions(services.config.current[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS])

    def handle(self, call: Call) -> Outcome:
        request = cast(FetchRequest, call.body)
        session: FetchSession | None = None
        if request.session_epoch > FIRST_EPOCH:
            session = self.sessions.get(request.session_id)
            if session is not None and session.principal != call.principal:
                session = None
            fault = check_session(session, request, call.version)
            if fault != ErrorCode.NONE:
                return refusal(fault)
            assert session is not None
            session.used_ms = self.clock_ms()
            session.advance()  # now, not with the response: a second request with this epoch is an error
        elif request.session_id != NO_SESSION:
            session = self.sessions.get(request.session_id)
            if session is not None and session.principal == call.principal:
                self.sessions.remove(request.session_id)
            session = None
        fetching = Fetching(self, call, session)
        if size_of(request) <= AT_ONCE:
            fetching.collect_all()
            fetching.read()
        else:
            self.replicas.fetch_lane.run(fetching.collect(), fetching.collected)
        return fetching.outcome()

    def terms(self, request: FetchRequest, version: int) -> FetchTerms:
        replica = replica_of(request, version)
        if replica >= 0:  # every other id is a consumer's, as in Kafka; only a follower reads what is not committed
            bound = Bound.END
        else:
            bound = Bound.VISIBLE_STABLE if request.isolation_level == 1 else Bound.VISIBLE
        max_bytes = min(request.max_bytes, self._max_bytes)
        return FetchTerms(
            replica_id=replica,
            max_wait_ms=min(request.max_wait_ms, LONGEST_WAIT_MS),
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            bound=bound,
            replica_epoch=request.replica_state.replica_epoch,
            rack=request.rack_id,
        )

    def name_of(self, topic_id: bytes, name: str, by_id: bool) -> str:
        if not by_id:
            return name
        known = self.image.ids.get(topic_id)
        if known is not None:
            return known.name
        known = self.image.ids.get(sibling_id(topic_id))
        return UNKNOWN if known is None else sibling_of(known.name)


class Fetching:
    """One fetch in progress; it may end before `handle` has returned, or after a wait."""

    def __init__(self, fetch: Fetch, call: Call, session: FetchSession | None) -> None:
        self._fetch = fetch
        self._call = call
        self._request = cast(FetchRequest, call.body)
        self._by_id = call.version >= FETCH_BY_ID_SINCE
        self._session = session
        self._incremental = session is not None
        self._epoch = 0 if session is None else session.epoch
        self._places: list[tuple[Place, Cached]] = []
        self._unread: set[int] = set()  # slots that are not read: unknown topic, or no right
        self._refused = False  # the client claims to be a follower without the right to it
        self._follower = False
        self._rights_version = -1  # of the rules by which the partitions were chosen
        self._response: FetchResponse | None = None
        self._fault: Exception | None = None
        self._later = False

    # First collect the requested partitions, all of the session if there is one.

    def collect_all(self) -> None:
        for topic in self._request.topics:
            name = self._fetch.name_of(topic.topic_id, topic.topic, self._by_id)
            for partition in topic.partitions:
                self._take(name, topic, partition)
        for forgotten in self._request.forgotten_topics_data:
            for number in forgotten.partitions:
                self._forget(forgotten, number)

    def collect(self) -> Steps[None]:
        """`collect_all` for very many partitions."""
        for topic in self._request.topics:
            name = self._fetch.name_of(topic.topic_id, topic.topic, self._by_id)
            for partition in topic.partitions:
                self._take(name, topic, partition)
                yield
        for forgotten in self._request.forgotten_topics_data:
            for number in forgotten.partitions:
                self._forget(forgotten, number)
                yield

    def collected(self, _: None, error: Exception | None) -> None:
        if error is None:
            self.read()
        else:
            self._fail(error)

    def _take(self, name: str, topic: FetchTopic, partition: FetchPartition) -> None:
        place = place_of(topic, partition.partition, self._by_id)
        wish = wish_of(name, topic, partition, self._by_id)
        if self._session is None:
            self._places.append((place, Cached(wish)))
        else:
            self._session.put(place, wish)

    def _forget(self, topic: ForgottenTopic, number: int) -> None:
        if self._session is not None:
            self._session.forget(forgotten_place(topic, number, self._by_id))

    # Then the read, which may wait.

    def read(self) -> None:
        fetch = self._fetch
        session = self._session
        if session is not None:
            for place, cached in list(session.unknown.items()):  # the topic may be known by now
                session.put(place, named(cached.wish, fetch.name_of(place[0], UNKNOWN, True)))
            self._places = list(session.partitions.items())
            if not self._places:
                fetch.sessions.remove(session.id)
                self._session = None
                self._incremental = False
            elif (
                self._request.topics
                and fetch.sessions.get(session.id) is session
                and not fetch.sessions.has_room_for(session)
            ):
                fetch.sessions.remove(session.id)  # this request is still answered; the next finds no session
        rights = self._call.rights
        if rights is None:
            wishes = [cached.wish for _, cached in self._places if cached.wish.topic]
            if len(wishes) < len(self._places):
                self._unread = {slot for slot, (_, cached) in enumerate(self._places) if not cached.wish.topic}
            self._start(wishes)
        elif len(self._places) <= AT_ONCE:
            self._start(finish(self._allowed(rights)))
        else:
            fetch.replicas.fetch_lane.run(self._allowed(rights), self._checked)

    def _allowed(self, rights: Rights) -> Steps[list[FetchWish]]:
        """The partitions that the client may read. A session is checked at every fetch: rights may have changed."""
        follower = self._follower = replica_of(self._request, self._call.version) >= 0
        self._rights_version = rights.version
        self._refused = follower and not rights.may_in_cluster(CLUSTER_ACTION)
        known = {UNKNOWN: False}
        wishes: list[FetchWish] = []
        for slot, (_, cached) in enumerate(self._places):
            topic = cached.wish.topic
            allowed = known.get(topic)
            if allowed is None:
                allowed = not self._refused if follower else rights.may(READ, TOPIC, topic)
                known[topic] = allowed
            if allowed:
                wishes.append(cached.wish)
            else:
                self._unread.add(slot)
            yield
        return wishes

    def _checked(self, wishes: list[FetchWish] | None, error: Exception | None) -> None:
        if wishes is not None:
            self._start(wishes)
        elif error is not None:
            self._fail(error)

    def _start(self, wishes: list[FetchWish]) -> None:
        if self._session is None and self._request.session_epoch == FIRST_EPOCH and self._places:
            self._make_session()
        terms = self._fetch.terms(self._request, self._call.version)
        self._fetch.replicas.fetch(terms, wishes, self._finish, self._waits)

    def _make_session(self) -> None:
        if self._call.rights is not None and self._unread:
            return
        sessions = self._fetch.sessions
        privileged = replica_of(self._request, self._call.version) >= 0
        session = sessions.create(self._by_id, privileged, len(self._places), self._fetch.clock_ms())
        if session is None:
            return
        session.principal = self._call.principal
        session.fill(self._places)
        if sessions.has_room_for(session):
            self._session = session
        else:
            sessions.remove(session.id)

    def _waits(self, give_up: Callable[[], None]) -> None:
        self._request = RELEASED
        self._call.release()
        self._call.on_gone(give_up)

    # Then build the response.

    def _finish(self, results: list[FetchResult]) -> None:
        session = self._session
        if self._incremental and session is not None and session.epoch != self._epoch:
            # Another request has used the session while this one waited.
            self._answer(refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH))
            return
        rights = self._call.rights
        if rights is not None and rights.version != self._rights_version:
            results = self._still_allowed(rights, results)
        if self._unread:
            results = self._with_unread(results)
        fetch = self._fetch
        call = self._call
        answer = FetchAnswer(fetch.image, fetch.replicas, call.listener, call.version, session, self._incremental)
        if len(self._places) <= AT_ONCE:
            for (place, cached), result in zip(self._places, results, strict=True):
                answer.add(place, cached, result)
            self._answer(answer.response())
        else:
            fetch.replicas.fetch_lane.run(self._add_all(answer, results), self._added)

    def _still_allowed(self, rights: Rights, results: list[FetchResult]) -> list[FetchResult]:
        """The results, without what the client may no longer read: the rules have changed while the fetch waited."""
        known: dict[str, bool] = {}
        kept: list[FetchResult] = []
        for result in results:
            topic = result.wish.topic
            allowed = known.get(topic)
            if allowed is None:
                allowed = rights.may_in_cluster(CLUSTER_ACTION) if self._follower else rights.may(READ, TOPIC, topic)
                known[topic] = allowed
            if not allowed:
                result = FetchResult(result.wish)
                result.code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            kept.append(result)
        return kept

    def _with_unread(self, results: list[FetchResult]) -> list[FetchResult]:
        """The results, with an error for each partition that was not read."""
        read = iter(results)
        return [
            unread(place, cached.wish, self._refused) if slot in self._unread else next(read)
            for slot, (place, cached) in enumerate(self._places)
        ]

    def _add_all(self, answer: FetchAnswer, results: list[FetchResult]) -> Steps[FetchResponse]:
        for (place, cached), result in zip(self._places, results, strict=True):
            answer.add(place, cached, result)
            yield
        return answer.response()

    def _added(self, response: FetchResponse | None, error: Exception | None) -> None:
        if response is not None:
            self._answer(response)
        elif error is not None:
            self._fail(error)

    def _answer(self, response: FetchResponse) -> None:
        self._response = response
        if self._later:
            self._call.respond(response)

    def _fail(self, error: Exception) -> None:
        self._fault = error
        if self._later:
            logger.error("a fetch of %s failed", self._call.address, exc_info=error)
            self._call.fail()

    def outcome(self) -> Outcome:
        if self._fault is not None:
            raise self._fault
        if self._response is None:
            self._later = True
            return LATER
        return self._response


def size_of(request: FetchRequest) -> int:
    """The number of partitions in the request."""
    size = 0
    for topic in request.topics:
        size += len(topic.partitions)
    for forgotten in request.forgotten_topics_data:
        size += len(forgotten.partitions)
    return size


def replica_of(request: FetchRequest, version: int) -> int:
    return request.replica_state.replica_id if version >= REPLICA_STATE_SINCE else request.replica_id


def unread(place: Place, wish: FetchWish, refused: bool) -> FetchResult:
    result = FetchResult(wish)
    if wish.topic or refused:
        result.code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        result.code = ErrorCode.UNKNOWN_TOPIC_ID if place[0] else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return result


def refusal(code: ErrorCode) -> FetchResponse:
    return FetchResponse(error_code=int(code), responses=())


def check_session(session: FetchSession | None, request: FetchRequest, version: int) -> ErrorCode:
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.by_id != (version >= FETCH_BY_ID_SINCE):
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    if session.epoch != request.session_epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return ErrorCode.NONE


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


def named(wish: FetchWish, topic: str) -> FetchWish:
    """The wish with the name of its topic, which was unknown."""
    return FetchWish(
        topic,
        wish.topic_id,
        wish.number,
        wish.offset,
        wish.max_bytes,
        wish.leader_epoch,
        wish.last_epoch,
        wish.log_start,
    )
