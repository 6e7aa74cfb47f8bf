"""EndTxn, 0-5: commit or abort.

The response is sent when the outcome is stored; it can no longer change, and the markers are written afterwards.
Version 5 (KIP-890) raises the epoch with every transaction and returns the new one; see `coordinators.txn.ending` for
repeated and late requests. Before version 2 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import TRANSACTIONAL_ID, WRITE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_ID
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights


def make(services: Services) -> Handle:
    transactions = services.transactions

    def handle(call: Call) -> Later:
        request = cast(EndTxnRequest, call.body)

        def done(code: ErrorCode, producer_id: int, epoch: int) -> None:
            if code == ErrorCode.PRODUCER_FENCED and call.version < 2:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            call.respond(EndTxnResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch))

        transactions.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            EPOCH_PER_TRANSACTION if call.version >= 5 else 0,
            done,
        )
        return LATER

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(EndTxnRequest, call.body)
    yield
    if rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return None
    return EndTxnResponse(error_code=NO_ID)


RIGHTS: Final = guard
