"""The requests of a transactional producer, in the versions of both protocols (KIP-890)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ixion.clients.core.connection import ConnectionMachine
from ixion.clients.core.producer.batch import ProducerIdentity
from ixion.clients.core.producer.group_offsets import GroupOffsets
from ixion.clients.metadata import TopicPartition, by_topic
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from ixion.language.protocol.messages.k26_end_txn import EndTxnRequest
from ixion.language.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

Asked = tuple[ApiKey, int, Struct]  # with the version

GROUP: Final = 0
TRANSACTION: Final = 1
LAST_OF_ONE: Final = 3  # later versions of FindCoordinator ask for several keys at once
LAST_OF_CLIENTS: Final = 3  # later versions of AddPartitionsToTxn are spoken between brokers
LAST_END_OF_V1: Final = 4
LAST_COMMIT_OF_V1: Final = 4
LAST_COMMIT_BY_NAME: Final = 5  # later ones have topic ids
EPOCHS_FROM: Final = 3  # the version of InitProducerId from which a producer may name the identity that it has
MEMBERS_FROM: Final = 3  # the version of TxnOffsetCommit from which a member names itself


def ask_coordinator(machine: ConnectionMachine, kind: int, key: str) -> Asked:
    version = machine.version(ApiKey.FIND_COORDINATOR, oldest=1)
    if version > LAST_OF_ONE:
        return ApiKey.FIND_COORDINATOR, version, FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    return ApiKey.FIND_COORDINATOR, version, FindCoordinatorRequest(key=key, key_type=kind)


def ask_identity(machine: ConnectionMachine, name: str, timeout_ms: int, current: ProducerIdentity | None) -> Asked:
    version = machine.version(ApiKey.INIT_PRODUCER_ID)
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
    if version >= EPOCHS_FROM and current is not None:
        request = request.replace(producer_id=current.producer_id, producer_epoch=current.epoch)
    return ApiKey.INIT_PRODUCER_ID, version, request


def add_partitions(
    machine: ConnectionMachine, name: str, current: ProducerIdentity, places: Iterable[TopicPartition]
) -> Asked:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=current.producer_id,
        v3_and_below_producer_epoch=current.epoch,
        v3_and_below_topics=tuple(
            [
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(numbers))
                for topic, numbers in by_topic(places).items()
            ]
        ),
    )
    return ApiKey.ADD_PARTITIONS_TO_TXN, machine.version(ApiKey.ADD_PARTITIONS_TO_TXN, newest=LAST_OF_CLIENTS), request


def add_offsets(machine: ConnectionMachine, name: str, current: ProducerIdentity, group: str) -> Asked:
    request = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=current.producer_id, producer_epoch=current.epoch, group_id=group
    )
    return ApiKey.ADD_OFFSETS_TO_TXN, machine.version(ApiKey.ADD_OFFSETS_TO_TXN), request


def commit_offsets(
    machine: ConnectionMachine, name: str, current: ProducerIdentity, sent: GroupOffsets, *, is_v2: bool
) -> Asked:
    newest = LAST_COMMIT_BY_NAME if is_v2 else LAST_COMMIT_OF_V1
    version = machine.version(ApiKey.TXN_OFFSET_COMMIT, newest=newest)
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for place, offset in sent.offsets.items():
        part = TxnOffsetCommitRequestPartition(
            partition_index=place.partition, committed_offset=offset, committed_metadata=""
        )
        topics.setdefault(place.topic, []).append(part)
    has_member = version >= MEMBERS_FROM
    request = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=sent.group.group_id,
        producer_id=current.producer_id,
        producer_epoch=current.epoch,
        generation_id_or_member_epoch=sent.group.generation_id if has_member else -1,
        member_id=sent.group.member_id if has_member else "",
        group_instance_id=sent.group.group_instance_id if has_member else None,
        topics=tuple(
            [TxnOffsetCommitRequestTopic(name=topic, partitions=tuple(parts)) for topic, parts in topics.items()]
        ),
    )
    return ApiKey.TXN_OFFSET_COMMIT, version, request


def end_transaction(
    machine: ConnectionMachine, name: str, current: ProducerIdentity, *, commits: bool, is_v2: bool
) -> Asked:
    request = EndTxnRequest(
        transactional_id=name, producer_id=current.producer_id, producer_epoch=current.epoch, committed=commits
    )
    newest = ApiKey.END_TXN.newest if is_v2 else LAST_END_OF_V1
    return ApiKey.END_TXN, machine.version(ApiKey.END_TXN, newest=newest), request
