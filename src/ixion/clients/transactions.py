"""Transactions: which there are, what each has written to, and the end of those that nobody will end.

A transaction *hangs* if a partition has one open of which no coordinator knows: a producer of an old client wrote after
its transaction had ended. Readers of committed records wait at its first offset for ever, until it is aborted there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.coordinator import transaction_coordinator
from ixion.clients.deadline import Deadline
from ixion.clients.faults import check, error_code, only
from ixion.clients.leaders import ask_leaders, by_topic, leader_of
from ixion.clients.metadata import TopicPartition
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ixion.protocol.messages.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ixion.protocol.messages.k65_describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ixion.protocol.messages.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ixion.protocol.registry import ApiKey


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


class OpenTransaction(NamedTuple):
    """As a partition knows it."""

    partition: TopicPartition
    start_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp_ms: int


def list_transactions(cluster: Cluster) -> list[TransactionListing]:
    """Of all coordinators, by transactional id."""

    def ask(within: Deadline) -> list[TransactionListing]:
        found = []
        for node in cluster.nodes(within):
            request = ListTransactionsRequest(state_filters=(), producer_id_filters=())
            broker = cluster.node(node.node_id, within)
            answer = broker.call(ApiKey.LIST_TRANSACTIONS, request, ListTransactionsResponse, within)
            check(answer.error_code, None, f"the transactions of broker {node.node_id}")
            found += [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, node.node_id)
                for each in answer.transaction_states
            ]
        return sorted(found)

    return cluster.attempt("listing transactions", ask)


def describe_transaction(cluster: Cluster, transactional_id: str) -> TransactionDescription:
    """KafkaError (TRANSACTIONAL_ID_NOT_FOUND) if there is none."""

    def ask(within: Deadline) -> TransactionDescription:
        broker = transaction_coordinator(cluster, transactional_id, within)
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        answer = broker.call(ApiKey.DESCRIBE_TRANSACTIONS, request, DescribeTransactionsResponse, within)
        found = only(answer.transaction_states, f"transactional id {transactional_id!r}")
        if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise KafkaError(error_code(found.error_code), f"there is no transactional id {transactional_id!r}")
        check(found.error_code, None, f"transactional id {transactional_id!r}")
        places = tuple(TopicPartition(topic.topic, number) for topic in found.topics for number in topic.partitions)
        return TransactionDescription(
            transactional_id,
            found.producer_id,
            found.producer_epoch,
            found.transaction_state,
            found.transaction_timeout_ms,
            found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
            places,
        )

    return cluster.attempt(f"describing transactional id {transactional_id!r}", ask)


def open_transactions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """Those that the partitions have open, oldest first."""

    def ask(
        broker: Connection, led: list[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, tuple[int, list[OpenTransaction]]]:
        topics = tuple(
            TopicRequest(name=name, partition_indexes=tuple(numbers)) for name, numbers in by_topic(led).items()
        )
        request = DescribeProducersRequest(topics=topics)
        answer = broker.call(ApiKey.DESCRIBE_PRODUCERS, request, DescribeProducersResponse, deadline)
        return {
            (place := TopicPartition(topic.name, part.partition_index)): (
                part.error_code,
                [
                    OpenTransaction(
                        place,
                        each.current_txn_start_offset,
                        each.producer_id,
                        each.producer_epoch,
                        each.coordinator_epoch,
                        each.last_timestamp,
                    )
                    for each in part.active_producers
                    if each.current_txn_start_offset >= 0
                ],
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    found = ask_leaders(cluster, "describing producers", partitions, ask)
    return sorted(each for listed in found.values() for each in listed)


def hanging(found: Iterable[OpenTransaction], known: Mapping[int, Iterable[TopicPartition]]) -> list[OpenTransaction]:
    """Those of producers (by id) whose coordinator has no transaction open on that partition."""
    return [each for each in found if each.partition not in set(known.get(each.producer_id, ()))]


def find_hanging(cluster: Cluster, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """The partitions are asked first: a transaction that begins in between is known to its coordinator by then."""
    found = open_transactions(cluster, partitions)
    producers = {each.producer_id for each in found}
    known: dict[int, list[TopicPartition]] = {}
    for listing in list_transactions(cluster) if found else []:
        if listing.producer_id in producers:
            known.setdefault(listing.producer_id, []).extend(
                describe_transaction(cluster, listing.transactional_id).partitions
            )
    return hanging(found, known)


def abort_transaction(cluster: Cluster, target: OpenTransaction) -> None:
    """Write an abort marker into the one partition, past the coordinator."""
    place = target.partition
    marker = WritableTxnMarker(
        producer_id=target.producer_id,
        producer_epoch=target.producer_epoch,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=place.topic, partition_indexes=(place.partition,)),),
        coordinator_epoch=max(target.coordinator_epoch, 0),
    )

    def ask(within: Deadline) -> None:
        broker = cluster.node(leader_of(cluster, place, within), within)
        request = WriteTxnMarkersRequest(markers=(marker,))
        answer = broker.call(ApiKey.WRITE_TXN_MARKERS, request, WriteTxnMarkersResponse, within)
        result = only(answer.markers, str(place))
        for part in (part for topic in result.topics for part in topic.partitions):
            check(part.error_code, None, f"aborting the transaction on {place}")

    cluster.attempt(f"aborting the transaction on {place}", ask)
