"""Transactions: list and describe them, and abort those that hang.

A transaction *hangs* if it is open in a partition but no coordinator knows of it: a producer of an old client wrote
after its transaction had ended. Consumers at read_committed wait at its first offset until it is aborted there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import (
    TRANSACTION,
    Spread,
    by_topic,
    every_node,
    fault_of,
    spread,
    to_coordinators,
    to_leaders,
)
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey


class TransactionListing(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None  # None if none is open
    partitions: tuple[TopicPartition, ...]


class ActiveProducer(NamedTuple):
    """The state of a producer in a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    start_offset: int | None  # of its open transaction


class OpenTransaction(NamedTuple):
    """An open transaction in a partition."""

    partition: TopicPartition
    start_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp_ms: int


def list_transactions(
    call: Call, *, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
) -> Plan[list[TransactionListing]]:
    """The transactions of all coordinators, by transactional id."""
    from ixion.language.protocol.messages.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse

    request = ListTransactionsRequest(state_filters=tuple(states), producer_id_filters=tuple(producer_ids))
    answers = yield from every_node(
        call,
        ApiKey.LIST_TRANSACTIONS,
        lambda _: request,
        ListTransactionsResponse,
        lambda answer: fault_of(answer.error_code, None, "the transactions of a broker"),
    )
    return sorted(
        TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, broker)
        for broker, answer in answers.items()
        for each in answer.transaction_states
    )


def describe_transactions(call: Call, transactional_ids: Iterable[str]) -> Plan[Results[str, TransactionDescription]]:
    """TRANSACTIONAL_ID_NOT_FOUND for an unknown id."""
    from ixion.language.protocol.messages.k65_describe_transactions import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
        TransactionState,
    )

    def describe(found: TransactionState) -> TransactionDescription | KafkaError:
        name = found.transactional_id
        if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no transactional id {name!r}")
        return fault_of(found.error_code, None, f"transactional id {name!r}") or TransactionDescription(
            name,
            found.producer_id,
            found.producer_epoch,
            found.transaction_state,
            found.transaction_timeout_ms,
            found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
            tuple(TopicPartition(topic.topic, number) for topic in found.topics for number in topic.partitions),
        )

    def make(some: list[str], _: int) -> Struct:
        return DescribeTransactionsRequest(transactional_ids=tuple(some))

    def read(answer: Struct) -> dict[str, TransactionDescription | KafkaError]:
        assert isinstance(answer, DescribeTransactionsResponse)
        return {each.transactional_id: describe(each) for each in answer.transaction_states}

    how = Spread(ApiKey.DESCRIBE_TRANSACTIONS)
    return (yield from spread(call, how, transactional_ids, to_coordinators(TRANSACTION), make, read))


def describe_producers(
    call: Call, partitions: Iterable[TopicPartition]
) -> Plan[Results[TopicPartition, list[ActiveProducer]]]:
    """The producers that each partition's leader knows."""
    from ixion.language.protocol.messages.k61_describe_producers import (
        DescribeProducersRequest,
        DescribeProducersResponse,
        TopicRequest,
    )

    def make(some: list[TopicPartition], _: int) -> Struct:
        topics = tuple(
            TopicRequest(name=name, partition_indexes=tuple(numbers)) for name, numbers in by_topic(some).items()
        )
        return DescribeProducersRequest(topics=topics)

    def read(answer: Struct) -> dict[TopicPartition, list[ActiveProducer] | KafkaError]:
        assert isinstance(answer, DescribeProducersResponse)
        found: dict[TopicPartition, list[ActiveProducer] | KafkaError] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                place = TopicPartition(topic.name, part.partition_index)
                producers = [
                    ActiveProducer(
                        each.producer_id,
                        each.producer_epoch,
                        each.last_sequence,
                        each.last_timestamp,
                        each.coordinator_epoch,
                        each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
                    )
                    for each in part.active_producers
                ]
                found[place] = fault_of(part.error_code, part.error_message, place) or producers
        return found

    return (yield from spread(call, Spread(ApiKey.DESCRIBE_PRODUCERS), partitions, to_leaders, make, read))


def open_transactions(call: Call, partitions: Iterable[TopicPartition]) -> Plan[list[OpenTransaction]]:
    """The open transactions of these partitions, oldest first. Raises the first fault of a partition."""
    found = yield from describe_producers(call, partitions)
    return sorted(
        OpenTransaction(
            place,
            each.start_offset,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_timestamp_ms,
        )
        for place, producers in found.check().items()
        for each in producers
        if each.start_offset is not None
    )


def hanging(found: Iterable[OpenTransaction], known: Mapping[int, Iterable[TopicPartition]]) -> list[OpenTransaction]:
    """The open transactions of `found` that no coordinator (`known`, by producer id) has on that partition."""
    return [each for each in found if each.partition not in set(known.get(each.producer_id, ()))]


def find_hanging(call: Call, partitions: Iterable[TopicPartition]) -> Plan[list[OpenTransaction]]:
    """Hanging transactions. Asks the partitions first: coordinators then know transactions that begin in between."""
    found = yield from open_transactions(call, partitions)
    known: dict[int, list[TopicPartition]] = {}
    if found:
        listed = yield from list_transactions(call, producer_ids=sorted({each.producer_id for each in found}))
        described = yield from describe_transactions(call, [each.transactional_id for each in listed])
        for each in described.check().values():
            known.setdefault(each.producer_id, []).extend(each.partitions)
    return hanging(found, known)


def abort_transaction(call: Call, target: OpenTransaction) -> Plan[None]:
    """Write an abort marker into one partition, without the coordinator."""
    from ixion.language.protocol.messages.k27_write_txn_markers import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )

    place = target.partition
    marker = WritableTxnMarker(
        producer_id=target.producer_id,
        producer_epoch=target.producer_epoch,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=place.topic, partition_indexes=(place.partition,)),),
        coordinator_epoch=max(target.coordinator_epoch, 0),
    )
    request = WriteTxnMarkersRequest(markers=(marker,))

    def read(answer: Struct) -> dict[TopicPartition, KafkaError | None]:
        assert isinstance(answer, WriteTxnMarkersResponse)
        return {
            (found := TopicPartition(topic.name, part.partition_index)): fault_of(
                part.error_code, None, f"aborting the transaction on {found}"
            )
            for each in answer.markers
            for topic in each.topics
            for part in topic.partitions
        }

    results: Results[TopicPartition, None] = yield from spread(
        call, Spread(ApiKey.WRITE_TXN_MARKERS), [place], to_leaders, lambda *_: request, read
    )
    results.check()


def fence_producers(call: Call, transactional_ids: Iterable[str]) -> Plan[Results[str, tuple[int, int]]]:
    """Fence the producers of these ids, and abort their transactions. Returns the new producer id and epoch."""
    from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

    results: Results[str, tuple[int, int]] = Results()
    for name in dict.fromkeys(transactional_ids):

        def make(some: list[str], _: int) -> Struct:
            return InitProducerIdRequest(transactional_id=some[0], transaction_timeout_ms=1)

        def read(answer: Struct, name: str = name) -> dict[str, tuple[int, int] | KafkaError]:
            assert isinstance(answer, InitProducerIdResponse)
            fault = fault_of(answer.error_code, None, f"transactional id {name!r}")
            return {name: fault or (answer.producer_id, answer.producer_epoch)}

        how = Spread(ApiKey.INIT_PRODUCER_ID)
        found = yield from spread(call, how, [name], to_coordinators(TRANSACTION), make, read)
        results.done.update(found.done)
        results.faults.update(found.faults)
    return results
