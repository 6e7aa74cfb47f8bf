"""Rules of the APIs about transactions and idempotent producers."""

from __future__ import annotations

from typing import Final, cast

from ixion.acl.numbers import (
    ALTER,
    CLUSTER_ACTION,
    DESCRIBE,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from ixion.acl.rights import Rights
from ixion.apis.call import Call
from ixion.apis.guards.shapes import filtered, refused_topics, sorted_out, trim_topics
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ixion.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ixion.protocol.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from ixion.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ixion.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ixion.protocol.messages.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps

NO_ID: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
NO_TOPIC: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_CLUSTER: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
OF_BROKERS_SINCE: Final = 4  # AddPartitionsToTxn


def init_producer_id(call: Call, rights: Rights) -> Steps[Struct | None]:
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


def add_partitions_to_txn(call: Call, rights: Rights) -> Steps[Struct | None]:
    """Clients, up to version 3: WRITE on the id and on each topic, or nothing is added. Brokers: CLUSTER_ACTION."""
    request = cast(AddPartitionsToTxnRequest, call.body)
    if call.version >= OF_BROKERS_SINCE:
        if rights.may_in_cluster(CLUSTER_ACTION):
            return None
        return AddPartitionsToTxnResponse(error_code=NO_CLUSTER)
    topics = request.v3_and_below_topics
    if not rights.may(WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return (yield from refused_additions({topic.name: NO_ID for topic in topics}, request))
    _, others = yield from sorted_out(topics, lambda topic: rights.may(WRITE, TOPIC, topic.name))
    if not others:
        return None
    codes = dict.fromkeys([topic.name for topic in topics], ErrorCode.OPERATION_NOT_ATTEMPTED)
    codes |= dict.fromkeys([topic.name for topic in others], NO_TOPIC)
    return (yield from refused_additions(codes, request))


def refused_additions(
    codes: dict[str, ErrorCode], request: AddPartitionsToTxnRequest
) -> Steps[AddPartitionsToTxnResponse]:
    results: list[AddPartitionsToTxnTopicResult] = []
    for topic in request.v3_and_below_topics:
        lines: list[AddPartitionsToTxnPartitionResult] = []
        for number in topic.partitions:
            lines.append(
                AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=codes[topic.name])
            )
            yield
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=tuple(lines)))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=tuple(results))


def add_offsets_to_txn(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(AddOffsetsToTxnRequest, call.body)
    yield
    if not rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=NO_ID)
    if not rights.may(READ, GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=NO_GROUP)
    return None


def end_txn(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(EndTxnRequest, call.body)
    yield
    if rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return None
    return EndTxnResponse(error_code=NO_ID)


def write_txn_markers(call: Call, rights: Rights) -> Steps[Struct | None]:
    """Coordinators, and administrators that abort a hanging transaction (KIP-664)."""
    if rights.sees_in_cluster(ALTER) or rights.may_in_cluster(CLUSTER_ACTION):
        return None
    return (yield from refused_markers(cast(WriteTxnMarkersRequest, call.body), NO_CLUSTER))


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


def txn_offset_commit(call: Call, rights: Rights) -> Steps[Struct | None]:
    """WRITE on the transactional id, READ on the group and on each topic."""
    request = cast(TxnOffsetCommitRequest, call.body)
    code = ErrorCode.NONE
    if not rights.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        code = NO_ID
    elif not rights.may(READ, GROUP, request.group_id):
        code = NO_GROUP
    if code == ErrorCode.NONE:
        yield from trim_topics(
            call,
            lambda topic: rights.may(READ, TOPIC, topic.name),
            lambda each: TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=NO_TOPIC),
            lambda topic, lines: TxnOffsetCommitResponseTopic(name=topic.name, partitions=lines),
        )
        return None
    topics = yield from refused_topics(
        request.topics,
        lambda each: TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code),
        lambda topic, lines: TxnOffsetCommitResponseTopic(name=topic.name, partitions=lines),
    )
    return TxnOffsetCommitResponse(topics=cast(tuple[TxnOffsetCommitResponseTopic, ...], tuple(topics)))


def describe_transactions(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the transactional id; the response has only topics that the client may describe."""
    request = cast(DescribeTransactionsRequest, call.body)
    kept, others = yield from sorted_out(
        request.transactional_ids, lambda name: rights.may(DESCRIBE, TRANSACTIONAL_ID, name)
    )
    call.narrow(request.replace(transactional_ids=tuple(kept)))
    refused = [
        TransactionState(
            error_code=NO_ID,
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
        for name in others
    ]

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(DescribeTransactionsResponse, body)
        states: list[TransactionState] = []
        for state in answer.transaction_states:
            topics, hidden = yield from sorted_out(state.topics, lambda each: rights.sees(DESCRIBE, TOPIC, each.topic))
            states.append(state.replace(topics=tuple(topics)) if hidden else state)
            yield
        return answer.replace(transaction_states=(*states, *refused))

    call.amend = amend
    return None


def list_transactions(call: Call, rights: Rights) -> Steps[Struct | None]:
    yield
    call.amend = filtered(
        "transaction_states", lambda state: rights.sees(DESCRIBE, TRANSACTIONAL_ID, state.transactional_id)
    )
    return None
