"""The producer id of an idempotent producer, and its epoch.

Any broker gives a producer id (InitProducerId without a transactional id). A new epoch needs no broker: it grows by one
here, as in Java's producer, and when no epoch is left, another producer id is requested.
"""

from __future__ import annotations

from typing import Final

from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, Outcome, Pending
from ixion.clients.core.producer.batch import NOBODY, ProducerIdentity
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.language.protocol.registry import ApiKey

NO_TRANSACTIONS: Final = 2**31 - 1  # in place of a transaction timeout
LAST_EPOCH: Final = 2**15 - 1


class Identity(Pending):
    def __init__(self, client: Client) -> None:
        self.current: ProducerIdentity = NOBODY
        self.fatal: KafkaError | None = None
        self._client = client
        self._is_asking = False
        self._failures = 0
        self._not_before_s = 0.0

    @property
    def is_known(self) -> bool:
        return self.current is not NOBODY

    @property
    def wake_s(self) -> float:
        if self.is_known or self._is_asking or self.fatal is not None:
            return NEVER
        return max(self._not_before_s, self._client.some_ready_s)

    def tick(self, now_s: float, is_wanted: bool) -> None:
        """Request a producer id if it is wanted, unknown, and no request is in flight."""
        if not is_wanted or self.is_known or self._is_asking or self.fatal is not None or now_s < self._not_before_s:
            return
        if self._client.denied is not None:
            self.fatal = self._client.denied
            return
        machine = self._client.least_loaded(now_s)
        if machine is None:
            return
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TRANSACTIONS)
        try:
            version = machine.version(ApiKey.INIT_PRODUCER_ID)
        except KafkaError as fault:
            self.fatal = fault
            return
        self._is_asking = True
        machine.send(ApiKey.INIT_PRODUCER_ID, version, request, self, now_s)

    def forget_question(self) -> None:
        """Forget the request in flight: its connection is closed."""
        self._is_asking = False

    def bump(self) -> None:
        """Take the next epoch, or request another producer id if no epoch is left."""
        current = self.current
        self.current = (
            NOBODY if current.epoch >= LAST_EPOCH else ProducerIdentity(current.producer_id, current.epoch + 1)
        )

    def complete(self, outcome: Outcome, now_s: float) -> None:
        self._is_asking = False
        if isinstance(outcome, InitProducerIdResponse):
            code = error_code(outcome.error_code)
            if code == ErrorCode.NONE and outcome.producer_id >= 0 and outcome.producer_epoch >= 0:
                self.current = ProducerIdentity(outcome.producer_id, outcome.producer_epoch)
                self._failures = 0
                return
            if code != ErrorCode.NONE and not code.retriable:
                self.fatal = KafkaError(code, f"getting a producer id: {code.explanation}")
                return
        self._failures += 1
        self._not_before_s = now_s + self._client.retry.pause_s(self._failures)
