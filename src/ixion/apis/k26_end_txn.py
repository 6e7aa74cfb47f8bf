"""EndTxn, 0-5: commit or abort.

The response is sent when the outcome is stored; it can no longer change, and the markers are written afterwards.
Version 5 (KIP-890) raises the epoch with every transaction and returns the new one; see `coordinators.txn.ending` for
repeated and late requests. Before version 2 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from ixion.wire.answer import LATER, Later


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
