"""AddPartitionsToTxn, 0-5: partitions that a transaction is going to write to.

Versions 0-3 come from clients, one transaction each. If a partition does not exist nothing is added: it gets
UNKNOWN_TOPIC_OR_PARTITION and the others OPERATION_NOT_ATTEMPTED. Versions 4 and 5 come from brokers (KIP-890): many
transactions at once, to be added or only looked up (`verify_only`). Before version 2 a fenced producer is told
INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION, TopicPartition
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ixion.wire.answer import LATER, Later

Codes = Mapping[TopicPartition, ErrorCode]


def make(services: Services) -> Handle:
    transactions = services.transactions
    image = services.image

    def handle(call: Call) -> Later:
        request = cast(AddPartitionsToTxnRequest, call.body)
        if call.version < 4:
            one = AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
            decide(one, call.version, lambda codes: call.respond(_answer_client(call.version, codes)))
            return LATER
        wanted = len(request.transactions)
        results: list[AddPartitionsToTxnResult] = []

        def collect(transactional_id: str, codes: Codes) -> None:
            results.append(AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=_by_topic(codes)))
            if len(results) == wanted:
                call.respond(AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_transaction=tuple(results)))

        if not wanted:
            call.respond(AddPartitionsToTxnResponse(throttle_time_ms=0))
        for each in request.transactions:
            decide(each, call.version, partial(collect, each.transactional_id))
        return LATER

    def decide(one: AddPartitionsToTxnTransaction, version: int, done: Callable[[Codes], None]) -> None:
        partitions = _partitions(one.topics)
        unknown = {each for each in partitions if image.partition(*each) is None}
        if unknown:
            done(
                {
                    each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if each in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED
                    for each in partitions
                }
            )
        elif one.verify_only:
            done(transactions.verify_partitions(one.transactional_id, one.producer_id, one.producer_epoch, partitions))
        else:
            transactions.add_partitions(
                one.transactional_id,
                one.producer_id,
                one.producer_epoch,
                partitions,
                EPOCH_PER_TRANSACTION if version >= 4 else 0,
                lambda code: done(dict.fromkeys(partitions, code)),
            )

    return handle


def _answer_client(version: int, codes: Codes) -> AddPartitionsToTxnResponse:
    if version < 2:
        codes = {
            partition: ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED else code
            for partition, code in codes.items()
        }
    return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=_by_topic(codes))


def _partitions(topics: tuple[AddPartitionsToTxnTopic, ...]) -> list[TopicPartition]:
    return list(dict.fromkeys((topic.name, number) for topic in topics for number in topic.partitions))


def _by_topic(codes: Codes) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (name, number), code in codes.items():
        result = AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        topics.setdefault(name, []).append(result)
    return tuple(
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=tuple(results))
        for name, results in topics.items()
    )
