"""Sends the requests of all share sessions, one at a time for each.

A fetch is sent while the caller polls and nothing is left to be handed out: what is fetched is locked, so fetching
ahead would keep records from other members. It takes along the acknowledgements of its partitions. With
`share_acquire_mode="record_limit"` one broker at a time is asked, so that the limit holds for all of them together.

Acknowledgements go by themselves when no fetch comes along within LINGER_S, when the caller waits for them, when they
renew a lock, and when they are about partitions that are not fetched any more. They go to the broker that delivered the
records: no other one knows their lock.

What an answer says about acknowledgements of a partition, lettered:
A  done
B  a record is not ours any more, or the request does not fit it: both halves again (see `portion`), down to one offset
C  the state could not be stored for now: again after a pause, as long as the lock lasts
D  any other error, or no answer: they may or may not have been carried out; the caller gets the error
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ixion.clients.address import Address
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, ConnectionMachine, Outcome, Pending
from ixion.clients.core.consumer.errand import node_wake_s
from ixion.clients.core.share.acknowledgement import RENEW
from ixion.clients.core.share.acquisition import Acquisition
from ixion.clients.core.share.errors import LockLostError
from ixion.clients.core.share.portion import Entry, Key, Portion
from ixion.clients.core.share.reading import read_acquired
from ixion.clients.core.share.requests import Terms, acknowledge_request, fetch_request
from ixion.clients.core.share.session import CLOSING, Ids, ShareSession
from ixion.clients.core.share.settings import IMPLICIT, RECORD_LIMIT, ShareSettings
from ixion.clients.faults import DisconnectedError, GarbledError, error_code
from ixion.clients.metadata import Node, TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.codec.sink import Deferred
from ixion.language.protocol.messages.k78_share_fetch import PartitionData, ShareFetchResponse
from ixion.language.protocol.messages.k79_share_acknowledge import ShareAcknowledgeResponse
from ixion.language.protocol.registry import ApiKey

LINGER_S: Final = 0.05  # for which acknowledgements wait for others, unless a caller waits for them
STRICT_FROM: Final = 2  # the first version of ShareFetch with a strict limit, and of ShareAcknowledge with renewals
FETCH: Final = 0
ACKNOWLEDGE: Final = 1
CLOSE: Final = 2
BROKEN: Final = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
TO_BLAME: Final = (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
MOVED: Final = (
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
PATIENCE: Final = 3  # failures of an unknown kind that the caller need not see
Told = Callable[[Entry, KafkaError | None], None]


class Fetched:
    """A partition that is assigned to us."""

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.failures = 0
        self.not_before_s = 0.0


class ShareFetcher:
    def __init__(
        self,
        client: Client,
        group: str,
        member_id: str,
        settings: ShareSettings,
        tell: Callable[[KafkaError], None],
        settled: Told,
    ) -> None:
        """`tell` takes faults that the caller must see, `settled` the outcome of each acknowledgement."""
        self.requests = 0
        self.trouble: KafkaError | None = None  # why nothing comes at the moment
        self.assigned: dict[TopicPartition, Fetched] = {}
        self.sessions: dict[int, ShareSession] = {}  # by node id
        self.most = 0  # records that the caller wants now; 0: it does not poll
        self.until_s = 0.0  # how long it waits for them
        self.renews = settings.auto_renew
        self.is_hurried = False  # a caller waits for acknowledgements
        self.is_closing = False
        self._client = client
        self._group = group
        self._member_id = member_id
        self._max_wait_ms = settings.fetch_max_wait_ms
        self._min_bytes = settings.fetch_min_bytes
        self._max_bytes = settings.fetch_max_bytes
        self._is_strict = settings.share_acquire_mode == RECORD_LIMIT
        self._is_implicit = settings.share_acknowledgement_mode == IMPLICIT
        self._tell = tell
        self._settled = settled
        self._turn = 0
        self._wake_s = NEVER

    @property
    def wake_s(self) -> float:
        return self._wake_s

    @property
    def has_fresh(self) -> bool:
        return any(each.fresh for session in self.sessions.values() for each in session.acquisitions)

    @property
    def has_unsettled(self) -> bool:
        """Whether an acknowledgement is unsent or unanswered."""
        return any(
            session.again or any(each.has_unsent or each.flying for each in session.acquisitions)
            for session in self.sessions.values()
        )

    @property
    def acquisitions(self) -> list[Acquisition]:
        return [each for session in self.sessions.values() for each in session.acquisitions]

    def assign(self, places: list[TopicPartition]) -> None:
        """Fetch these. What was acquired of others is acknowledged as before."""
        self.assigned = {place: self.assigned.get(place) or Fetched(place) for place in places}

    def noted(self, now_s: float) -> None:
        """There are new acknowledgements."""
        for session in self.sessions.values():
            if session.has_unsent:
                session.due_s = min(session.due_s, now_s + LINGER_S)
                self._wake_s = min(self._wake_s, session.due_s)

    def tick(self, now_s: float) -> None:
        self._wake_s = NEVER
        wanted = self._wanted(now_s)
        for node_id in wanted:
            if node_id not in self.sessions:
                self.sessions[node_id] = ShareSession(node_id)
        for session in self._in_turn():
            session.tidy(now_s)
            line = session.line
            if line is not None and (line.closed or self._client.connection(session.node_id) is not line):
                fault = line.fault or DisconnectedError("the connection was closed")
                self._lose(session, fault, now_s)
            self._renew(session, now_s)
            if not session.is_flying:
                self._serve(session, wanted.get(session.node_id, {}), now_s)
            for acquisition in session.acquisitions:
                self._wake_s = min(self._wake_s, acquisition.lapses_s)  # its session may have nothing left to do then
        self.sessions = {node_id: session for node_id, session in self.sessions.items() if not session.is_over(now_s)}

    def lose_all(self, fault: KafkaError, now_s: float) -> None:
        """All connections are closed."""
        for session in self.sessions.values():
            session.is_flying = False
            session.is_fetching = False
            self._lose(session, fault, now_s)

    # What to send

    def _wanted(self, now_s: float) -> dict[int, Ids]:
        """Topic ids of what is to be fetched, by leader."""
        found: dict[int, Ids] = {}
        cluster = self._client.cluster
        for state in self.assigned.values():
            partition = cluster.leader(state.place)
            if partition is None:
                if state.place.topic in cluster.topics:
                    cluster.mark_stale()
                    text = f"{state.place} has no leader at the moment"
                    self.trouble = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, text)
                continue
            if now_s < state.not_before_s:
                self._wake_s = min(self._wake_s, state.not_before_s)
                continue
            topic_id = cluster.topics[state.place.topic].topic_id
            if topic_id != ZERO_ID:
                found.setdefault(partition.leader, {})[state.place] = topic_id
        return found

    def _in_turn(self) -> list[ShareSession]:
        """With a strict limit, another broker comes first each time."""
        sessions = list(self.sessions.values())
        if self._is_strict and len(sessions) > 1:
            self._turn = (self._turn + 1) % len(sessions)
            return sessions[self._turn :] + sessions[: self._turn]
        return sessions

    @property
    def _may_fetch(self) -> bool:
        if self.most <= 0 or self.is_closing or self.has_fresh:
            return False
        return not (self._is_strict and any(session.is_fetching for session in self.sessions.values()))

    def _renew(self, session: ShareSession, now_s: float) -> None:
        if not self.renews:
            return
        for acquisition in session.acquisitions:
            if acquisition.held or acquisition.fresh:
                if now_s >= acquisition.renew_s:
                    acquisition.renew_all()
                self._wake_s = min(self._wake_s, acquisition.renew_s)

    def _serve(self, session: ShareSession, wanted: Ids, now_s: float) -> None:
        """Send the next request of a session, if there is one."""
        is_fetching = bool(wanted) and self._may_fetch and now_s >= session.not_before_s
        is_idle = session.knows_some and not wanted and not session.acquisitions
        is_ending = session.is_open and (self.is_closing or is_idle) and not session.has_unsent
        must_send = session.has_unsent and (
            self.is_closing
            or self.is_hurried
            or session.has_renewals
            or now_s >= session.due_s
            or (is_fetching and not self._ride_along(session, wanted))
        )
        if session.again and now_s < session.again_s:
            self._wake_s = min(self._wake_s, session.again_s)
            must_send = must_send and any(each.has_unsent for each in session.acquisitions)
        if not (is_fetching or must_send or is_ending):
            if session.has_unsent:
                self._wake_s = min(self._wake_s, session.due_s)
            if wanted and now_s < session.not_before_s and self.most > 0:
                self._wake_s = min(self._wake_s, session.not_before_s)
            return
        machine = self._ready(session.node_id, now_s)
        if machine is None:
            return
        try:
            if must_send or is_ending:
                self._acknowledge(session, machine, is_ending, now_s)
            else:
                self._fetch(session, machine, wanted, now_s)
        except KafkaError as fault:  # a version that the broker does not speak
            self._fail(session, fault, now_s)

    def _ride_along(self, session: ShareSession, wanted: Ids) -> bool:
        """Whether a fetch of these can take all acknowledgements along."""
        if session.has_renewals:
            return False
        places = [portion.place for portion in session.again]
        places += [each.place for each in session.acquisitions if each.has_unsent]
        return all(place in wanted for place in places)

    def _ready(self, node_id: int, now_s: float) -> ConnectionMachine | None:
        machine = self._client.ready(node_id, now_s)
        if machine is None:
            self._wake_s = min(self._wake_s, node_wake_s(self._client, node_id, now_s))
            if self._client.fault is not None:
                self.trouble = self._client.fault
            return None
        if now_s < machine.throttled_until_s:
            self._wake_s = min(self._wake_s, machine.throttled_until_s)
            return None
        return machine

    def _fetch(self, session: ShareSession, machine: ConnectionMachine, wanted: Ids, now_s: float) -> None:
        version = machine.version(ApiKey.SHARE_FETCH, oldest=STRICT_FROM if self._is_strict else 0)
        portions = self._take_unsent(session, now_s) if session.is_open else {}
        added, gone = session.change_to(wanted)
        wait_ms = min(self._max_wait_ms, max(int((self.until_s - now_s) * 1000), 0))
        terms = Terms(wait_ms, self._min_bytes, self._max_bytes, self.most, int(self._is_strict))
        request = fetch_request(self._group, self._member_id, session.epoch, added, gone, portions, terms)
        flight = Flight(self, session, FETCH, portions, now_s)
        flight.places = {(topic_id, place.partition): place for place, topic_id in wanted.items()}
        session.line = machine
        session.is_flying = True
        session.is_fetching = True
        self.requests += 1
        machine.send(ApiKey.SHARE_FETCH, version, request, flight, now_s, held_s=wait_ms / 1000)

    def _acknowledge(self, session: ShareSession, machine: ConnectionMachine, is_ending: bool, now_s: float) -> None:
        oldest = STRICT_FROM if session.has_renewals else 0
        try:
            version = machine.version(ApiKey.SHARE_ACKNOWLEDGE, oldest=oldest)
        except KafkaError as fault:
            if not session.has_renewals:
                raise
            self._refuse_renewals(session, fault)
            return
        portions = self._take_unsent(session, now_s)
        if not (portions or is_ending):  # all of it was too late, or waits for its second attempt
            self._wake_s = min(self._wake_s, session.again_s if session.again else now_s)
            return
        epoch = CLOSING if is_ending else session.epoch
        request = acknowledge_request(self._group, self._member_id, epoch, portions.values())
        flight = Flight(self, session, CLOSE if is_ending else ACKNOWLEDGE, portions, now_s)
        session.is_flying = True
        self.requests += 1
        machine.send(ApiKey.SHARE_ACKNOWLEDGE, version, request, flight, now_s)

    def _take_unsent(self, session: ShareSession, now_s: float) -> dict[Key, Portion]:
        portions, late = session.take_unsent(now_s)
        session.due_s = max(session.again_s, now_s) if session.has_unsent else NEVER
        for entry in late:
            reason = entry.acquisition.lost or "its lock has ended"
            self._settled(entry, LockLostError(entry.what, reason))
        return portions

    def _refuse_renewals(self, session: ShareSession, fault: KafkaError) -> None:
        """The broker does not know them."""
        self.renews = False
        self._wake_s = 0.0
        for acquisition in session.acquisitions:
            renewals, acquisition.renewals = acquisition.renewals, []
            for item in renewals:
                self._settled(Entry(item, acquisition), fault)

    # What answers say

    def landed(self, flight: Flight, outcome: Outcome, now_s: float) -> None:
        session = flight.session
        if self.sessions.get(session.node_id) is not session or not session.is_flying:
            self._end_all(flight, DisconnectedError("the session has ended"))
            return
        session.is_flying = False
        session.is_fetching = False
        if not isinstance(outcome, ShareFetchResponse | ShareAcknowledgeResponse):
            fault = outcome if isinstance(outcome, KafkaError) else GarbledError("a share session: no valid answer")
            self._end_all(flight, fault)
            self._lose(session, fault, now_s)
            return
        code = error_code(outcome.error_code)
        if code != ErrorCode.NONE:
            about = f"the share session at broker {session.node_id}"
            fault = KafkaError(code, f"{about}: {outcome.error_message or code.explanation}")
            self._refused(flight, fault, now_s)
            return
        lock_s = max(outcome.acquisition_lock_timeout_ms, 0) / 1000
        if flight.kind == CLOSE:
            session.end()
        else:
            session.advance()
        nodes = {
            end.node_id: Node(end.node_id, Address(end.host, end.port), end.rack) for end in outcome.node_endpoints
        }
        if isinstance(outcome, ShareFetchResponse):
            for topic in outcome.responses:
                for data in topic.partitions:
                    key = (topic.topic_id, data.partition_index)
                    portion = flight.portions.pop(key, None)
                    if portion is not None:
                        self._answered(flight, portion, data.acknowledge_error_code, lock_s, now_s)
                    place = flight.places.get(key)
                    if place is not None:
                        self._take(session, place, topic.topic_id, data, nodes, lock_s, now_s)
            for portion in flight.portions.values():  # a partition without news is left out
                self._answered(flight, portion, 0, lock_s, now_s)
        else:
            for part in outcome.responses:
                for said in part.partitions:
                    portion = flight.portions.pop((part.topic_id, said.partition_index), None)
                    if portion is not None:
                        self._answered(flight, portion, said.error_code, lock_s, now_s)
            self._end_all(flight, GarbledError("the broker left out a partition with acknowledgements"))
        if flight.kind == CLOSE:
            self._lose(session, DisconnectedError("the session was closed"), now_s)

    def _refused(self, flight: Flight, fault: KafkaError, now_s: float) -> None:
        """The whole request was refused."""
        session = flight.session
        if fault.code in BROKEN or flight.kind == CLOSE:
            self._end_all(flight, fault)
            self._lose(session, fault, now_s)
            return
        if fault.code.retriable and session.is_open:
            for portion in flight.portions.values():
                self._send_again(session, [portion], now_s)
        else:
            self._end_all(flight, fault)
        if not session.is_open:
            session.end()  # it was not opened
        self._fail(session, fault, now_s)

    def _answered(self, flight: Flight, portion: Portion, error: int, lock_s: float, now_s: float) -> None:
        session = flight.session
        code = error_code(error)
        if code == ErrorCode.NONE:  # A
            for entry in portion.entries:
                if entry.item.kind == RENEW:
                    self._renewed(entry, flight.sent_s, lock_s)
                self._end(entry, None)
            return
        if code in TO_BLAME and portion.count > 1 and any(each.is_narrowed for each in portion.entries):
            session.again.extend(portion.halves())  # B
            session.again_s = session.due_s = now_s
            return
        if code.retriable and not code.stale_metadata and session.is_open:
            self._send_again(session, [portion], now_s)  # C
            return
        if code.stale_metadata:
            self._client.cluster.mark_stale()
        for entry in portion.entries:  # D
            text = f"{entry.what} could not be acknowledged: {code.explanation}"
            self._end(entry, KafkaError(code, text))

    def _send_again(self, session: ShareSession, portions: list[Portion], now_s: float) -> None:
        """After a pause, what is still locked then."""
        session.failures += 1
        session.again_s = now_s + self._client.retry.pause_s(session.failures)
        session.due_s = min(session.due_s, session.again_s)
        for portion in portions:
            kept: list[Entry] = []
            for entry in portion.entries:
                if entry.acquisition.has_lock(entry.item.first, session.again_s):
                    kept.append(entry)
                else:
                    self._end(entry, LockLostError(entry.what, "its lock has ended"))
            if kept:
                session.again.append(Portion(portion.place, portion.topic_id, kept))

    def _renewed(self, entry: Entry, since_s: float, lock_s: float) -> None:
        acquisition = entry.acquisition
        lock_s = lock_s or acquisition.lock_s
        if entry.item.is_ours:
            acquisition.lock_from(since_s, lock_s)
        else:
            acquisition.renewed(entry.item.first, since_s, lock_s)

    def _take(
        self,
        session: ShareSession,
        place: TopicPartition,
        topic_id: bytes,
        data: PartitionData,
        nodes: Mapping[int, Node],
        lock_s: float,
        now_s: float,
    ) -> None:
        code = error_code(data.error_code)
        state = self.assigned.get(place)
        if code == ErrorCode.NONE:
            if state is not None:
                state.failures = 0
            self.trouble = None
            if data.acquired_records:
                records = data.records
                assert not isinstance(records, Deferred)  # only a broker defers records
                found = read_acquired(records or b"", data.acquired_records)
                acquisition = Acquisition(self, place, topic_id, found, lock_s, now_s, is_implicit=self._is_implicit)
                session.acquisitions.append(acquisition)
                if found.fault is not None:
                    self._tell(KafkaError(found.fault.code, f"{place}: {found.fault.message}"))
                if state is None:
                    acquisition.release_fresh()
                if acquisition.has_unsent:
                    session.due_s = min(session.due_s, now_s + LINGER_S)
            return
        if state is None:
            return
        leader = data.current_leader
        known = {**nodes}
        if leader.leader_id >= 0 and self._client.cluster.hint(place, leader.leader_id, leader.leader_epoch, known):
            return
        fault = KafkaError(code, f"{place}: {data.error_message or code.explanation}")
        self.trouble = fault
        state.failures += 1
        state.not_before_s = now_s + self._client.retry.pause_s(state.failures)
        if code.stale_metadata or code in MOVED:
            self._client.cluster.mark_stale()
        if not code.retriable and (code not in MOVED or state.failures > PATIENCE):
            self._tell(fault)

    def _fail(self, session: ShareSession, fault: KafkaError, now_s: float) -> None:
        """Pause before the next fetch of a session."""
        self.trouble = fault
        session.failures += 1
        session.not_before_s = now_s + self._client.retry.pause_s(session.failures)
        self._wake_s = min(self._wake_s, session.not_before_s)
        if fault.code.stale_metadata or fault.code in MOVED:
            self._client.cluster.mark_stale()
        if not fault.code.retriable and (fault.code not in MOVED or session.failures > PATIENCE):
            self._tell(fault)

    def _lose(self, session: ShareSession, fault: KafkaError, now_s: float) -> None:
        """The session has ended, and with it all locks."""
        session.end()
        reason = f"the share session has ended ({fault.message})"
        again = list(session.again)
        session.again.clear()
        for portion in again:
            for entry in portion.entries:
                self._end(entry, LockLostError(entry.what, reason))
        for acquisition in session.acquisitions:
            acquisition.lose(reason)
            _, late = acquisition.take_unsent(now_s)
            for entry in late:
                self._settled(entry, LockLostError(entry.what, reason))
        session.tidy(now_s)

    def _end_all(self, flight: Flight, fault: KafkaError) -> None:
        for portion in flight.portions.values():
            for entry in portion.entries:
                self._end(entry, fault)
        flight.portions.clear()

    def _end(self, entry: Entry, fault: KafkaError | None) -> None:
        entry.acquisition.flying -= entry.item.size
        self._settled(entry, fault)


class Flight(Pending):
    """A request under way."""

    def __init__(
        self, fetcher: ShareFetcher, session: ShareSession, kind: int, portions: dict[Key, Portion], sent_s: float
    ) -> None:
        self.session = session
        self.kind = kind
        self.portions = portions
        self.places: dict[Key, TopicPartition] = {}  # what a fetch asked for, or had asked for before
        self.sent_s = sent_s
        self._fetcher = fetcher

    def complete(self, outcome: Outcome, now_s: float) -> None:
        self._fetcher.landed(self, outcome, now_s)
