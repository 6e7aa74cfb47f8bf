"""The number by which a broker knows an idempotent producer again."""

from __future__ import annotations

from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.deadline import Deadline
from ixion.clients.faults import GarbledError, check
from ixion.clients.outbox import ProducerIdentity
from ixion.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.protocol.registry import ApiKey

NO_TRANSACTIONS: Final = 2**31 - 1  # in place of a transaction timeout


def new_identity(cluster: Cluster) -> ProducerIdentity:
    def ask(within: Deadline) -> ProducerIdentity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TRANSACTIONS)
        answer = cluster.any(within).call(ApiKey.INIT_PRODUCER_ID, request, InitProducerIdResponse, within)
        check(answer.error_code, None, "a producer id")
        if answer.producer_id < 0 or answer.producer_epoch < 0:
            raise GarbledError(f"the broker gave producer id {answer.producer_id}, epoch {answer.producer_epoch}")
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    return cluster.attempt("getting a producer id", ask)
