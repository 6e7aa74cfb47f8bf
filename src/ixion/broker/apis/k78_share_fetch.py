"""ShareFetch (78), versions 1 and 2: acquire records for a member of a share group, acknowledge others (KIP-932).

The broker chooses the offsets. A share session (`share.session`) names the partitions once; its first fetch carries no
acknowledgements. The response has the records from the first to the last batch of those acquired, and says which
offsets in them are acquired, with the number of deliveries. Version 2 brought the strict limit of records (KIP-1206)
and renewals (KIP-1222): with `is_renew_ack` the request only acknowledges.

The broker's fetch.max.bytes limits max_bytes. An unknown topic is an error of its partition (Kafka's own answer to that
refuses the first fetch as a whole). A fetch beyond the limit of sessions is answered after its max_wait_ms, so that a
client does not try again in a hurry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import GROUP, READ
from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.broker.apis.guards.guard import IN_HANDLER
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.apis.share_calls import (
    ACKNOWLEDGED,
    ELSEWHERE,
    MOST_BATCHES,
    RENEW_SINCE,
    Acknowledging,
    ShareCalls,
    Verdict,
    Verdicts,
)
from ixion.broker.share.fetch import Results, ShareFetch, ShareResult, ShareTerms, Target
from ixion.broker.share.session import FINAL_EPOCH, FIRST_EPOCH, Place, ShareSession
from ixion.config.network_settings import FETCH_MAX_BYTES
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k78_share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ixion.language.wire.answer import LATER

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

logger = logging.getLogger(__name__)

LONGEST_WAIT_MS: Final = 600_000
REPEATS: Final = {
    "topics": once("topic_id", partitions=once("partition_index", acknowledgement_batches=ACKNOWLEDGED)),
    "forgotten_topics_data": once("topic_id", partitions=NUMBERS),
}
RIGHTS: Final = IN_HANDLER  # READ group; READ topic, before the session remembers it
STRICT: Final = 1  # acquire mode record_limit
NO_LEADER: Final[LeaderIdAndEpoch] = LeaderIdAndEpoch.blank()
NOTHING: Final = ShareResult()
NO_VERDICT: Final = Verdict()
RELEASED: Final = ShareFetchRequest(
    member_id=None,
    share_session_epoch=0,
    max_wait_ms=0,
    min_bytes=0,
    max_records=0,
    batch_size=0,
    topics=(),
    forgotten_topics_data=(),
)


def make(services: Services) -> Handle:
    return ShareFetchHandler(services).handle


class ShareFetchHandler:
    def __init__(self, services: Services) -> None:
        self.calls: Final = ShareCalls(services)
        self.max_bytes: Final[int] = services.config.current[FETCH_MAX_BYTES]
        self._timer = services.timer

    def handle(self, call: Call) -> Outcome:
        request = cast(ShareFetchRequest, call.body)
        group, member, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
        try:
            self.calls.check_caller(call, group, member)
            check_request(request)
            if epoch == FIRST_EPOCH:
                session = self._begin(call, request, group, member)
                if session is None:
                    return self._refuse_later(call, request)
            else:
                session = self.calls.session_of(call, group, member, epoch)
                if epoch != FINAL_EPOCH:
                    self._go_on(call, session, request)
        except KafkaError as error:
            return refusal(error)
        fetching = Fetching(self, call, request, session)

        def then() -> None:
            if epoch == FINAL_EPOCH:
                self.calls.shares.end_session(session)
            if session.open:
                fetching.fetch()
            else:  # also if it has ended meanwhile: nobody would release what it acquired
                fetching.fetched({})

        fetching.acknowledge(then)
        return fetching.outcome()

    def _begin(self, call: Call, request: ShareFetchRequest, group: str, member: str) -> ShareSession | None:
        shares = self.calls.shares
        session = shares.begin_session((group, member), call.principal, self._allowed(call, request))
        if session is not None:
            connection = call.request.connection
            begun = session

            def end() -> None:
                shares.end_session(begun)

            def forget() -> None:
                connection.no_longer_on_closed(end)

            session.on_end = forget
            connection.on_closed(end)
        return session

    def _allowed(self, call: Call, request: ShareFetchRequest) -> list[Place]:
        """What the client may not read is answered, and not remembered."""
        places = places_of(request)
        rights = call.rights
        if rights is None:
            return places
        known: dict[bytes, tuple[str, ErrorCode]] = {}
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return [place for place in places if self.calls.topic_of(place[0], rights, known)[1] != refused]

    def _go_on(self, call: Call, session: ShareSession, request: ShareFetchRequest) -> None:
        forgotten = [(topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions]
        if not self.calls.shares.sessions.change(session, self._allowed(call, request), forgotten):
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "share sessions have no room for more partitions")
        session.advance()

    def _refuse_later(self, call: Call, request: ShareFetchRequest) -> Outcome:
        wait_ms = min(request.max_wait_ms, LONGEST_WAIT_MS)
        full = refusal(KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "too many share sessions"))
        if wait_ms <= 0:
            return full
        task = self._timer.call_later(wait_ms, call.respond, full)
        call.release()
        call.on_gone(lambda: ignore(task.cancel()))
        return LATER


class Fetching:
    """One request: its acknowledgements and its fetch, and the response when both are done."""

    def __init__(
        self, handler: ShareFetchHandler, call: Call, request: ShareFetchRequest, session: ShareSession
    ) -> None:
        self._handler = handler
        self._calls = handler.calls
        self._call = call
        self._request = request
        self._session = session
        self._renews = call.version >= RENEW_SINCE and request.is_renew_ack
        self._full = request.share_session_epoch == FIRST_EPOCH  # the response names every partition
        self._named = places_of(request)
        self._verdicts: Verdicts | None = None
        self._results: Results | None = None
        self._response: ShareFetchResponse | None = None
        self._later = False
        rights = call.rights
        self._rights_version = -1 if rights is None else rights.version

    def acknowledge(self, then: Callable[[], None]) -> None:
        wanted = [
            ((topic.topic_id, each.partition_index), each.acknowledgement_batches)
            for topic in self._request.topics
            for each in topic.partitions
            if each.acknowledgement_batches
        ]
        if wanted:
            call = self._call
            acknowledging = Acknowledging(self._calls, self._session, call.rights, self._renews, self._acknowledged)
            acknowledging.run(call.request.lane, wanted, then)
        else:
            self._verdicts = {}
            then()

    def _acknowledged(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._finish()

    def fetch(self) -> None:
        request, session = self._request, self._session
        if self._renews or request.max_records <= 0:
            self.fetched({})
            return
        known: dict[bytes, tuple[str, ErrorCode]] = {}
        rights = self._call.rights
        targets: list[Target] = []
        named = set(self._named)
        for place in dict.fromkeys([*session.in_turn(), *self._named]):
            topic, refused = self._calls.topic_of(place[0], rights, known)
            if refused == ErrorCode.NONE or place in named:  # an error is said once, to the request that names it
                targets.append(Target(place, topic, refused))
        max_bytes = min(request.max_bytes, self._handler.max_bytes)
        terms = ShareTerms(
            group=session.group,
            member=session.member,
            max_wait_ms=min(request.max_wait_ms, LONGEST_WAIT_MS),
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=max(request.batch_size, 0),
            strict=request.share_acquire_mode == STRICT,
        )
        fetch = ShareFetch(self._calls.shares, terms, targets, self.fetched, self._waits)
        session.stop_fetch = fetch.stop
        fetch.start()

    def fetched(self, results: Results) -> None:
        self._results = results
        self._session.stop_fetch = None
        self._finish()

    def _waits(self, give_up: Callable[[], None]) -> None:
        self._request = RELEASED
        self._call.release()
        self._call.on_gone(give_up)

    def _finish(self) -> None:
        if self._verdicts is None or self._results is None:
            return
        rights = self._call.rights
        if rights is None or rights.version == self._rights_version:
            self._response = self._answer(self._verdicts, self._results)
        elif not rights.may(READ, GROUP, self._session.group):
            self._response = refusal(KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "the right was taken away"))
        else:
            self._response = self._answer(self._verdicts, self._still_allowed(rights, self._results))
        if self._later:
            self._call.respond(self._response)

    def _still_allowed(self, rights: Rights, results: Results) -> Results:
        """The results, without what the member may no longer read: the rules have changed while the fetch waited. Their
        locks expire."""
        known: dict[bytes, tuple[str, ErrorCode]] = {}
        kept: Results = {}
        for place, result in results.items():
            refused = self._calls.topic_of(place[0], rights, known)[1]
            kept[place] = ShareResult(refused) if refused == ErrorCode.TOPIC_AUTHORIZATION_FAILED else result
        return kept

    def outcome(self) -> Outcome:
        if self._response is not None:
            return self._response
        self._later = True
        if self._results is not None:  # only the acknowledgements are still being stored
            self._call.wait_for_others()
        return LATER

    def _answer(self, verdicts: Verdicts, results: Results) -> ShareFetchResponse:
        places: dict[Place, None] = dict.fromkeys(self._named) if self._full else {}
        places.update(dict.fromkeys(results))
        places.update(dict.fromkeys(verdicts))
        topics: dict[bytes, list[PartitionData]] = {}
        elsewhere: set[int] = set()
        size = 0
        for place in places:
            result = results.get(place, NOTHING)
            size += len(result.records)
            part = self._partition(place, result, verdicts.get(place, NO_VERDICT), elsewhere)
            topics.setdefault(place[0], []).append(part)
        counters = self._calls.replicas.counters
        counters.fetches += 1
        counters.bytes_out += size
        return ShareFetchResponse(
            error_code=0,
            acquisition_lock_timeout_ms=self._calls.lock_ms(self._session.group),
            responses=tuple(
                [
                    ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(parts))
                    for topic_id, parts in topics.items()
                ]
            ),
            node_endpoints=tuple(
                [
                    NodeEndpoint(node_id=number, host=host, port=port, rack=rack)
                    for number, host, port, rack in self._calls.addresses(self._call.listener, elsewhere)
                ]
            ),
        )

    def _partition(self, place: Place, result: ShareResult, verdict: Verdict, elsewhere: set[int]) -> PartitionData:
        leader = NO_LEADER
        if result.code in ELSEWHERE or verdict.code in ELSEWHERE:
            broker, epoch = self._calls.leader(*place)
            leader = LeaderIdAndEpoch(leader_id=broker, leader_epoch=epoch)
            elsewhere.add(broker)
        return PartitionData(
            partition_index=place[1],
            error_code=int(result.code),
            acknowledge_error_code=int(verdict.code),
            acknowledge_error_message=verdict.message,
            current_leader=leader,
            records=result.records,
            acquired_records=tuple(
                [
                    AcquiredRecords(first_offset=each.first, last_offset=each.last, delivery_count=each.deliveries)
                    for each in result.acquired
                ]
            ),
        )


def check_request(request: ShareFetchRequest) -> None:
    """KafkaError for a request that contradicts itself."""
    batches = [len(each.acknowledgement_batches) for topic in request.topics for each in topic.partitions]
    count = sum(batches)
    if count > MOST_BATCHES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"more than {MOST_BATCHES} batches")
    if request.share_session_epoch == FIRST_EPOCH and count:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the first fetch of a session acknowledges nothing")
    if request.max_bytes < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a fetch of {request.max_bytes} bytes")
    if request.is_renew_ack and (request.max_wait_ms or request.min_bytes or request.max_bytes or request.max_records):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a fetch that renews must not ask for records")


def places_of(request: ShareFetchRequest) -> list[Place]:
    return [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]


def ignore(_: object) -> None:
    """For a result that does not matter."""


def refusal(error: KafkaError) -> ShareFetchResponse:
    return ShareFetchResponse(
        error_code=int(error.code),
        error_message=error.message,
        acquisition_lock_timeout_ms=0,
        responses=(),
        node_endpoints=(),
    )
