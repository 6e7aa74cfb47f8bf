"""InitProducerId, 0-5: a producer id and an epoch.

Without a transactional id: a new id and epoch 0, for an idempotent producer (KIP-98). With one: see
`coordinators.txn.starting`. From version 3 a producer may send its current id and epoch, to continue after an error
(KIP-360); 4 has PRODUCER_FENCED, which older clients get as INVALID_PRODUCER_EPOCH; 5 has TRANSACTION_ABORTABLE, which
is never needed here. Version 6 (two-phase commit, KIP-939) is not served: Kafka calls it unstable.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.wire.answer import LATER, Later


def make(services: Services) -> Handle:
    transactions = services.transactions

    def handle(call: Call) -> Later:
        request = cast(InitProducerIdRequest, call.body)

        def done(code: ErrorCode, producer_id: int, epoch: int) -> None:
            if code == ErrorCode.PRODUCER_FENCED and call.version < 4:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            call.respond(InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch))

        transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            request.producer_id,
            request.producer_epoch,
            done,
        )
        return LATER

    return handle
