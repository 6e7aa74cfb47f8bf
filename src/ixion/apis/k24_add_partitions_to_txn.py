"""AddPartitionsToTxn, 0-5: add partitions to a transaction before it writes to them.

Versions 0-3 come from clients, with one transaction. If a partition does not exist, nothing is added: it gets
UNKNOWN_TOPIC_OR_PARTITION and the others OPERATION_NOT_ATTEMPTED. Versions 4 and 5 come from brokers (KIP-890), with
many transactions, to add partitions or only to verify them (`verify_only`). Before version 2 a fenced producer gets
INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import respond_in_turns, sliced
from ixion.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION
from ixion.model.errors import ErrorCode
from ixion.model.topic_partition import TopicPartition
from ixion.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps
from ixion.wire.answer import LATER, Later

BATCHED_SINCE: Final = 4

Codes = Mapping[TopicPartition, ErrorCode]


def make(services: Services) -> Handle:
    transactions = services.transactions
    image = services.image

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(AddPartitionsToTxnRequest, call.body)
        if call.version < BATCHED_SINCE:
            one = AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
            yield from decide(
                one, call.version, lambda codes: respond_in_turns(call, answer_client(call.version, codes))
            )
            return LATER
        wanted = len(request.transactions)
        decided: list[tuple[str, Codes]] = []

        def collect(transactional_id: str, codes: Codes) -> None:
            decided.append((transactional_id, codes))
            if len(decided) == wanted:
                respond_in_turns(call, answer_broker(decided))

        if not wanted:
            return AddPartitionsToTxnResponse()
        for each in request.transactions:
            yield from decide(each, call.version, partial(collect, each.transactional_id))
            yield
        return LATER

    def decide(one: AddPartitionsToTxnTransaction, version: int, done: Callable[[Codes], None]) -> Steps[None]:
        partitions: dict[TopicPartition, ErrorCode] = {}
        is_unknown = False
        for topic in one.topics:
            for number in topic.partitions:
                known = image.partition(topic.name, number) is not None
                is_unknown = is_unknown or not known
                code = ErrorCode.OPERATION_NOT_ATTEMPTED if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                partitions[topic.name, number] = code
                yield
            yield
        if is_unknown:
            done(partitions)
        elif one.verify_only:
            done(transactions.verify_partitions(one.transactional_id, one.producer_id, one.producer_epoch, partitions))
        else:
            transactions.add_partitions(
                one.transactional_id,
                one.producer_id,
                one.producer_epoch,
                partitions,
                EPOCH_PER_TRANSACTION if version >= BATCHED_SINCE else 0,
                lambda code: done(dict.fromkeys(partitions, code)),
            )

    return sliced(handle)


def answer_client(version: int, codes: Codes) -> Steps[AddPartitionsToTxnResponse]:
    if version < 2:
        codes = {
            partition: ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED else code
            for partition, code in codes.items()
        }
    topics = yield from by_topic(codes)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)


def answer_broker(decided: list[tuple[str, Codes]]) -> Steps[AddPartitionsToTxnResponse]:
    results: list[AddPartitionsToTxnResult] = []
    for transactional_id, codes in decided:
        topics = yield from by_topic(codes)
        results.append(AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=topics))
        yield
    return AddPartitionsToTxnResponse(results_by_transaction=tuple(results))


def by_topic(codes: Codes) -> Steps[tuple[AddPartitionsToTxnTopicResult, ...]]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (name, number), code in codes.items():
        result = AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        topics.setdefault(name, []).append(result)
        yield
    found: list[AddPartitionsToTxnTopicResult] = []
    for name, results in topics.items():
        found.append(AddPartitionsToTxnTopicResult(name=name, results_by_partition=tuple(results)))
        yield
    return tuple(found)
