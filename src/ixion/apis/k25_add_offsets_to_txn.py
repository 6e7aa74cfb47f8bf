"""AddOffsetsToTxn, 0-4: the offsets of a group will be part of the transaction.

It adds the group's partition of `__consumer_offsets`, so that the marker is written there too. Clients with
transaction.version 2 do not send this request: their TxnOffsetCommit adds the partition. Before version 2 a fenced
producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ixion.replica.internal_topic import GROUP_OFFSETS
from ixion.wire.answer import LATER, Later


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
