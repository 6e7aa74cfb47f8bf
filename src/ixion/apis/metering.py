"""Holds clients to their quotas: bytes produced and fetched, and time of the event loop.

What a request costs is recorded when it is handled; how long its client must wait is stamped into the answer in one
place (`Call.encode`), and the connection is not read until then. Handlers know nothing of it. The answer itself is not
held back, and a fetch that is too much is given all the same: the wait behind it makes up for it. (Kafka empties the
answer.) A fetch gives no more than the quota allows in all windows together.

What brokers send each other, and logging in, is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final, cast

from ixion.apis.call import Call, Handle
from ixion.protocol.messages.k01_fetch import FetchRequest, FetchResponse
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.quota.limits import FETCH, PRODUCE, REQUEST
from ixion.quota.quotas import Quotas

EXEMPT: Final = frozenset(
    {
        *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN),
        *(ApiKey.WRITE_TXN_MARKERS, ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS),
        *(ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
    }
)
REPLICA_STATE_SINCE: Final = 15
PERCENT_NS: Final = 10_000_000  # of one core, in a second


def metered(key: ApiKey, handle: Handle, quotas: Quotas) -> Handle:
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
        call.meter = waiting.settle
        begun_ns = perf_counter_ns()
        outcome = handle(call)
        if limits.has(REQUEST):
            used = (perf_counter_ns() - begun_ns) / PERCENT_NS
            waiting.wait_ms = max(waiting.wait_ms, quotas.record(REQUEST, user, client_id, used))
        if outcome is None and waiting.wait_ms > 0:  # there will be no answer
            request.connection.throttle(waiting.wait_ms)
        return outcome

    return start


class Waiting:
    """What a client must wait for, known in part before there is an answer."""

    def __init__(self, wait_ms: int) -> None:
        self.wait_ms = wait_ms
        self.record: Callable[[Struct], int] | None = None

    def settle(self, answer: Struct) -> int:
        if self.record is not None:
            self.wait_ms = max(self.wait_ms, self.record(answer))
            self.record = None
        return self.wait_ms


def fetched(answer: Struct) -> float:
    if not isinstance(answer, FetchResponse):
        return 0.0
    return float(sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions))
