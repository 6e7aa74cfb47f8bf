"""WriteTxnMarkers, 1-2: a transaction coordinator on another broker has markers written into partitions led here.

One answer for the whole request, when every marker has its outcome. Version 2 says the transaction.version of the
producer (KIP-1228): from 2 on a marker's epoch is above that of the records it ends, and one that is not is refused
with INVALID_PRODUCER_EPOCH, unless nothing is open (then it is a repetition).
"""

from __future__ import annotations

from functools import partial
from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.coordinators.txn.markers import Marker
from ixion.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION, TopicPartition
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps
from ixion.wire.answer import LATER, Later


def make(services: Services) -> Handle:
    markers = services.transactions.markers

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(WriteTxnMarkersRequest, call.body)
        results: list[WritableTxnMarkerResult] = []

        def written(producer_id: int, codes: dict[TopicPartition, ErrorCode]) -> None:
            results.append(_result(producer_id, codes))
            if len(results) == len(request.markers):
                call.respond(WriteTxnMarkersResponse(markers=tuple(results)))

        if not request.markers:
            call.respond(WriteTxnMarkersResponse(markers=()))
        for each in request.markers:
            markers.write(_marker(each), partial(written, each.producer_id))
            yield
        return LATER

    return sliced(handle)


def _marker(each: WritableTxnMarker) -> Marker:
    return Marker(
        producer_id=each.producer_id,
        epoch=each.producer_epoch,
        commit=each.transaction_result,
        coordinator_epoch=each.coordinator_epoch,
        partitions=frozenset((topic.name, number) for topic in each.topics for number in topic.partition_indexes),
        raised=each.transaction_version >= EPOCH_PER_TRANSACTION,
    )


def _result(producer_id: int, codes: dict[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (name, number), code in codes.items():
        topics.setdefault(name, []).append(WritableTxnMarkerPartitionResult(partition_index=number, error_code=code))
    return WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
        ),
    )
