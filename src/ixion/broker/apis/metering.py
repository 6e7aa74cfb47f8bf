"""Enforces client quotas: bytes produced and fetched, changes of topics, and time of the event loop.

The cost of a request is recorded when it is handled. Time is measured in all turns that the work takes, and on worker
threads (`timer.payer`, `Call.spend`). `Call.encode` writes the throttle time into the response, and the
connection is not read for that time. Handlers have no code for quotas. The response itself is not delayed, and a fetch
above the quota still returns its records; the throttle time makes up for it. (Kafka empties the response.) A fetch
returns no more than the quota allows in all windows together.

The controller calls `Call.charge` with the partitions that a request creates or deletes, after it has checked them. It
may refuse (THROTTLING_QUOTA_EXCEEDED) clients that are new enough to expect that (`STRICT_SINCE`, KIP-599).

Requests between brokers, and requests before the login, are not counted: nothing is remembered of a stranger's names.
A client that only claims to be a broker is counted. Decoding a short request takes half a millisecond at most, and is
not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION
from ixion.broker.apis.call import Begin, Call, Outcome
from ixion.broker.apis.guards.guard import rights_of
from ixion.broker.quota.limits import FETCH, MUTATION, PRODUCE, REQUEST
from ixion.broker.quota.mutations import Mutations
from ixion.broker.quota.quotas import Quotas
from ixion.config.listeners import listeners
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k01_fetch import FetchRequest, FetchResponse
from ixion.language.protocol.messages.k78_share_fetch import ShareFetchRequest, ShareFetchResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.timer.payer import PAYER

if TYPE_CHECKING:
    from ixion.broker.apis.services import Services
    from ixion.broker.network.request import Request

OF_BROKERS: Final = frozenset(
    {
        *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN),
        *(ApiKey.WRITE_TXN_MARKERS, ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS),
        *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE),
        *(ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
    }
)
LOGINS: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
FETCHES: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})
REPLICA_STATE_SINCE: Final = 15
# Older versions of these, and Metadata and StreamsGroupHeartbeat that create topics, are never refused, only throttled.
STRICT_SINCE: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
CHANGES: Final = frozenset({*STRICT_SINCE, ApiKey.METADATA, ApiKey.STREAMS_GROUP_HEARTBEAT})
NEVER: Final = 1 << 16
PERCENT_NS: Final = 10_000_000  # one percent of a second


def metered(
    key: ApiKey, handle: Begin, quotas: Quotas, mutations: Mutations, is_broker: Callable[[Call], bool]
) -> Begin:
    """`is_broker`: whether a request comes from a broker, if it says so."""
    if key in LOGINS:
        return handle
    limits = quotas.limits

    def start(call: Call) -> Outcome:
        request = call.request
        gate = request.connection.gate
        if gate is not None and not gate.is_open:
            return handle(call)
        if (key in OF_BROKERS or (key is ApiKey.FETCH and names_replica(call))) and is_broker(call):
            return handle(call)
        user, client_id = user_of(request), call.client_id
        if key in FETCHES:
            asked = cast(FetchRequest | ShareFetchRequest, call.body)
            most = quotas.most_at_once(FETCH, user, client_id)
            if most is not None and most < asked.max_bytes:
                call.narrow(asked.replace(max_bytes=max(int(most), 1)))
        wait_ms = 0
        if key is ApiKey.PRODUCE:
            wait_ms = quotas.record(PRODUCE, user, client_id, float(request.frame.size))
        waiting = Waiting(wait_ms)
        if key in FETCHES and limits.has(FETCH):
            waiting.record = lambda answer: quotas.record(FETCH, user, client_id, fetched(answer))
        if key in CHANGES and limits.has(MUTATION):
            strict = call.version >= STRICT_SINCE.get(key, NEVER)
            call.charge = Charge(quotas, mutations, user, client_id, strict, waiting)
        call.meter = waiting.settle
        if not limits.has(REQUEST):
            outcome = handle(call)
        else:
            time = Time(quotas, user, client_id, waiting)
            spend = call.spend = time.spend
            before, PAYER.current = PAYER.current, spend
            begun_ns = perf_counter_ns() - call.spent_ns
            try:
                outcome = handle(call)
            finally:
                PAYER.current = before
                time.spend(perf_counter_ns() - begun_ns)
        if outcome is None and waiting.wait_ms > 0:  # there will be no response
            request.connection.throttle(waiting.wait_ms)
        return outcome

    return start


def names_replica(call: Call) -> bool:
    fetch = cast(FetchRequest, call.body)
    return (fetch.replica_state.replica_id if call.version >= REPLICA_STATE_SINCE else fetch.replica_id) >= 0


def user_of(request: Request) -> str:
    return request.connection.principal.partition(":")[2]


def brokers_of(services: Services) -> Callable[[Call], bool]:
    """By the right to act for the cluster; without an authorizer, by the listener."""
    authorizer = services.authorizer
    if authorizer is not None:
        return lambda call: rights_of(call, authorizer).sees_in_cluster(CLUSTER_ACTION)
    known = listeners(services.config.current)
    names = {known.inter_broker, known.control_plane, *known.internal_writers}
    return lambda call: call.listener in names


def charge_decoding(quotas: Quotas, request: Request, used_ns: int) -> None:
    """For a long request that no handler gets: its client has left, or it is invalid."""
    gate = request.connection.gate
    if quotas.limits.has(REQUEST) and (gate is None or gate.is_open):
        quotas.record(REQUEST, user_of(request), request.frame.client_id or "", used_ns / PERCENT_NS)


class Waiting:
    """The throttle time of a request, known in part before there is a response."""

    def __init__(self, wait_ms: int) -> None:
        self.wait_ms = wait_ms
        self.record: Callable[[Struct], int] | None = None
        self.left_ms: Callable[[], int] | None = None  # the rest of a throttle time that began before the response

    def settle(self, answer: Struct) -> int:
        if self.record is not None:
            self.wait_ms = max(self.wait_ms, self.record(answer))
            self.record = None
        if self.left_ms is not None:
            self.wait_ms = max(self.wait_ms, self.left_ms())
        return self.wait_ms


class Time:
    """Records the time that a request takes, in its first turn and later."""

    def __init__(self, quotas: Quotas, user: str, client_id: str, waiting: Waiting) -> None:
        self._quotas = quotas
        self._user = user
        self._client_id = client_id
        self._waiting = waiting

    def spend(self, used_ns: int) -> None:
        wait_ms = self._quotas.record(REQUEST, self._user, self._client_id, used_ns / PERCENT_NS)
        self._waiting.wait_ms = max(self._waiting.wait_ms, wait_ms)


class Charge:
    """Records the changes of one request. KafkaError THROTTLING_QUOTA_EXCEEDED if the client must wait first."""

    def __init__(
        self, quotas: Quotas, mutations: Mutations, user: str, client_id: str, strict: bool, waiting: Waiting
    ) -> None:
        self._quotas = quotas
        self._mutations = mutations
        self._user = user
        self._client_id = client_id
        self._strict = strict
        self._waiting = waiting
        self._due_ms = 0

    def __call__(self, count: int) -> None:
        verdict = self._mutations.record(self._user, self._client_id, count, self._strict)
        if verdict.wait_ms > 0:
            self._due_ms = self._mutations.monotonic_ms() + verdict.wait_ms
            self._waiting.left_ms = self._left_ms
            self._quotas.note(MUTATION)
        if not verdict.accepted:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the quota on changes of topics is used up")

    def _left_ms(self) -> int:
        return max(self._due_ms - self._mutations.monotonic_ms(), 0)


def fetched(answer: Struct) -> float:
    if not isinstance(answer, (FetchResponse, ShareFetchResponse)):
        return 0.0
    return float(sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions))
