"""Enforces client quotas: bytes produced and fetched, changes of topics, and time of the event loop.

The cost of a request is recorded when it is handled. `Call.encode` writes the throttle time into the response, and the
connection is not read for that time. Handlers have no code for quotas. The response itself is not delayed, and a fetch
above the quota still returns its records; the throttle time makes up for it. (Kafka empties the response.) A fetch
returns no more than the quota allows in all windows together.

The controller calls `Call.charge` with the partitions that a request creates or deletes, after it has checked them. It
may refuse (THROTTLING_QUOTA_EXCEEDED) clients that are new enough to expect that (`STRICT_SINCE`, KIP-599).

Requests between brokers, and logins, are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final, cast

from ixion.apis.call import Call, Handle
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k01_fetch import FetchRequest, FetchResponse
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.quota.limits import FETCH, MUTATION, PRODUCE, REQUEST
from ixion.quota.mutations import Mutations
from ixion.quota.quotas import Quotas

EXEMPT: Final = frozenset(
    {
        *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN),
        *(ApiKey.WRITE_TXN_MARKERS, ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS),
        *(ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
    }
)
REPLICA_STATE_SINCE: Final = 15
# Older versions of these, and Metadata that creates topics, are never refused, only throttled.
STRICT_SINCE: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
CHANGES: Final = frozenset({*STRICT_SINCE, ApiKey.METADATA})
NEVER: Final = 1 << 16
PERCENT_NS: Final = 10_000_000  # one percent of a second


def metered(key: ApiKey, handle: Handle, quotas: Quotas, mutations: Mutations) -> Handle:
    if key in EXEMPT:
        return handle
    limits = quotas.limits

    def start(call: Call) -> Any:
        request = call.request
        user, client_id = request.connection.principal.partition(":")[2], call.client_id
        if key is ApiKey.FETCH:
            fetch = cast(FetchRequest, call.body)
            if (fetch.replica_state.replica_id if call.version >= REPLICA_STATE_SINCE else fetch.replica_id) >= 0:
                return handle(call)
            most = quotas.most_at_once(FETCH, user, client_id)
            if most is not None and most < fetch.max_bytes:
                call.narrow(fetch.replace(max_bytes=max(int(most), 1)))
        wait_ms = 0
        if key is ApiKey.PRODUCE:
            wait_ms = quotas.record(PRODUCE, user, client_id, float(request.frame.size))
        waiting = Waiting(wait_ms)
        if key is ApiKey.FETCH and limits.has(FETCH):
            waiting.record = lambda answer: quotas.record(FETCH, user, client_id, fetched(answer))
        if key in CHANGES and limits.has(MUTATION):
            strict = call.version >= STRICT_SINCE.get(key, NEVER)
            call.charge = Charge(quotas, mutations, user, client_id, strict, waiting)
        call.meter = waiting.settle
        begun_ns = perf_counter_ns()
        outcome = handle(call)
        if limits.has(REQUEST):
            used = (perf_counter_ns() - begun_ns) / PERCENT_NS
            waiting.wait_ms = max(waiting.wait_ms, quotas.record(REQUEST, user, client_id, used))
        if outcome is None and waiting.wait_ms > 0:  # there will be no response
            request.connection.throttle(waiting.wait_ms)
        return outcome

    return start


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
    if not isinstance(answer, FetchResponse):
        return 0.0
    return float(sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions))
