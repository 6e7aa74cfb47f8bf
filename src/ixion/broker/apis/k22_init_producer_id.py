"""InitProducerId, 0-5: a producer id and an epoch.

Without a transactional id: a new id and epoch 0, for an idempotent producer (KIP-98). With one: see
`coordinators.txn.starting`. From version 3 a producer may send its current id and epoch, to continue after an error
(KIP-360); 4 has PRODUCER_FENCED, which older clients get as INVALID_PRODUCER_EPOCH; 5 has TRANSACTION_ABORTABLE, which
is never needed here. Version 6 (two-phase commit, KIP-939) is not served: Kafka calls it unstable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import IDEMPOTENT_WRITE, TOPIC, TRANSACTIONAL_ID, WRITE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, NO_ID
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights


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


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """WRITE on the transactional id; without an id, IDEMPOTENT_WRITE or WRITE on any topic (KIP-679)."""
    request = cast(InitProducerIdRequest, call.body)
    yield
    code = ErrorCode.NONE
    if request.transactional_id is not None:
        if not rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
            code = NO_ID
    elif not rights.may_for_any(WRITE, TOPIC) and not rights.may_in_cluster(IDEMPOTENT_WRITE):
        code = NO_CLUSTER
    if code == ErrorCode.NONE:
        return None
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=0)


RIGHTS: Final = guard
