"""AddPartitionsToTxn, 0-5: add partitions to a transaction before it writes to them.

Versions 0-3 come from clients, with one transaction. If a partition does not exist, nothing is added: it gets
UNKNOWN_TOPIC_OR_PARTITION and the others OPERATION_NOT_ATTEMPTED. Versions 4 and 5 come from brokers (KIP-890), with
many transactions, to add partitions or only to verify them (`verify_only`). Before version 2 a fenced producer gets
INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION, TOPIC, TRANSACTIONAL_ID, WRITE
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, NO_ID, NO_TOPIC, sorted_out
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {
    "transactions": once(
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "verify_only",
        topics=once("name", partitions=NUMBERS),
    ),
    "v3_and_below_topics": once("name", partitions=NUMBERS),
}

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

    return handle


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


OF_BROKERS_SINCE: Final = 4  # AddPartitionsToTxn


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
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


RIGHTS: Final = guard


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
