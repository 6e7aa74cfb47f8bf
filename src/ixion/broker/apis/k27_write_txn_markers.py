"""WriteTxnMarkers, 1-2: a transaction coordinator asks this broker to write markers into partitions that it leads.

The response is sent when every marker has its outcome. Version 2 has the transaction.version of the producer
(KIP-1228). From transaction.version 2 on, a marker's epoch must be above that of its transaction; otherwise it gets
INVALID_PRODUCER_EPOCH, unless no transaction is open (then it is a duplicate).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import ALTER, CLUSTER_ACTION
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_topics
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.txn.markers import Marker
from ixion.broker.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION
from ixion.config.listeners import listeners
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {
    "markers": once(
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "coordinator_epoch",
        "transaction_version",
        topics=once("name", partition_indexes=NUMBERS),
    )
}

AT_ONCE: Final = 500  # partitions that get a marker in one turn


def make(services: Services) -> Handle:
    markers = services.transactions.markers
    known = listeners(services.config.current)
    of_brokers = {known.inter_broker, known.control_plane, *known.internal_writers}

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(WriteTxnMarkersRequest, call.body)
        if call.rights is None and call.listener not in of_brokers:
            return (yield from refused_markers(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        written: list[tuple[int, dict[TopicPartition, ErrorCode]]] = []  # by marker: producer id, codes
        left = 1  # markers being written, plus one until all are started

        def done(codes: dict[TopicPartition, ErrorCode], some: dict[TopicPartition, ErrorCode]) -> None:
            nonlocal left
            codes.update(some)
            left -= 1
            if left == 0:
                respond_in_turns(call, answer(written))

        for each in request.markers:
            codes: dict[TopicPartition, ErrorCode] = {}
            written.append((each.producer_id, codes))
            for some in (yield from chunks(each)):
                left += 1
                markers.write(marker_of(each, some), partial(done, codes))
                yield
            yield
        done({}, {})
        return LATER

    return handle


def chunks(marker: WritableTxnMarker) -> Steps[list[list[TopicPartition]]]:
    """The partitions of a marker, in chunks that are written in one turn."""
    found: list[list[TopicPartition]] = []
    for topic in marker.topics:
        for number in topic.partition_indexes:
            if not found or len(found[-1]) == AT_ONCE:
                found.append([])
            found[-1].append((topic.name, number))
            yield
        yield
    return found


def marker_of(each: WritableTxnMarker, partitions: list[TopicPartition]) -> Marker:
    return Marker(
        producer_id=each.producer_id,
        epoch=each.producer_epoch,
        commit=each.transaction_result,
        coordinator_epoch=each.coordinator_epoch,
        partitions=frozenset(partitions),
        raised=each.transaction_version >= EPOCH_PER_TRANSACTION,
    )


def answer(written: list[tuple[int, dict[TopicPartition, ErrorCode]]]) -> Steps[WriteTxnMarkersResponse]:
    results: list[WritableTxnMarkerResult] = []
    for producer_id, codes in written:
        topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
        for (name, number), code in codes.items():
            result = WritableTxnMarkerPartitionResult(partition_index=number, error_code=code)
            topics.setdefault(name, []).append(result)
            yield
        found: list[WritableTxnMarkerTopicResult] = []
        for name, partitions in topics.items():
            found.append(WritableTxnMarkerTopicResult(name=name, partitions=tuple(partitions)))
            yield
        results.append(WritableTxnMarkerResult(producer_id=producer_id, topics=tuple(found)))
        yield
    return WriteTxnMarkersResponse(markers=tuple(results))


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """Coordinators, and administrators that abort a hanging transaction (KIP-664)."""
    if rights.sees_in_cluster(ALTER) or rights.may_in_cluster(CLUSTER_ACTION):
        return None
    return (yield from refused_markers(cast(WriteTxnMarkersRequest, call.body), NO_CLUSTER))


RIGHTS: Final = guard


def refused_markers(request: WriteTxnMarkersRequest, code: ErrorCode) -> Steps[WriteTxnMarkersResponse]:
    results: list[WritableTxnMarkerResult] = []
    for marker in request.markers:
        topics = yield from refused_topics(
            marker.topics,
            lambda number: WritableTxnMarkerPartitionResult(partition_index=number, error_code=code),
            lambda topic, lines: WritableTxnMarkerTopicResult(name=topic.name, partitions=lines),
            "partition_indexes",
        )
        topics_of = cast(tuple[WritableTxnMarkerTopicResult, ...], tuple(topics))
        results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics_of))
    return WriteTxnMarkersResponse(markers=tuple(results))
