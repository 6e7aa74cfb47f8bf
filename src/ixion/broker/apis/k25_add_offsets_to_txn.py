"""AddOffsetsToTxn, 0-4: the offsets of a group will be part of the transaction.

It adds the group's partition of `__consumer_offsets`, so that the marker is written there too. Clients with
transaction.version 2 do not send this request: their TxnOffsetCommit adds the partition. Before version 2 a fenced
producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import GROUP, READ, TRANSACTIONAL_ID, WRITE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_ID
from ixion.broker.apis.services import Services
from ixion.broker.replica.internal_topic import GROUP_OFFSETS
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights


def make(services: Services) -> Handle:
    transactions = services.transactions
    offsets = services.internal_topics[GROUP_OFFSETS]

    def handle(call: Call) -> Later:
        request = cast(AddOffsetsToTxnRequest, call.body)

        def done(code: ErrorCode) -> None:
            if code == ErrorCode.PRODUCER_FENCED and call.version < 2:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            call.respond(AddOffsetsToTxnResponse(error_code=code))

        transactions.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [(GROUP_OFFSETS, offsets.partition_for(request.group_id))],
            0,
            done,
        )
        return LATER

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(AddOffsetsToTxnRequest, call.body)
    yield
    if not rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=NO_ID)
    if not rights.may(READ, GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=NO_GROUP)
    return None


RIGHTS: Final = guard
