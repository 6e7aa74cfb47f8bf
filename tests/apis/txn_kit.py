"""Requests of transactions over a `Raw` connection, in few words.

Use it to test an API key of transactions (`tests/apis/k2*`). For the coordinator without a broker, see
`tests/coordinators/txn/world.py`; to compare with Apache Kafka, add a step to `txn_script`.
"""

from __future__ import annotations

from typing import Any

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ixion.language.protocol.messages.k26_end_txn import EndTxnRequest
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from tests.apis.raw import Raw

TRANSACTION = 1  # type of key in FindCoordinator


def find(raw: Raw, name: str) -> None:
    """As every client does first; it makes the internal topic."""
    answer = raw.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key=name, key_type=TRANSACTION))
    assert answer.error_code == 0


def init(
    raw: Raw, name: str | None, producer_id: int = -1, epoch: int = -1, *, timeout_ms: int = 60_000, version: int = 4
) -> tuple[int, int]:
    answer = init_answer(raw, name, producer_id, epoch, timeout_ms=timeout_ms, version=version)
    assert answer.error_code == 0, ErrorCode(answer.error_code)
    return answer.producer_id, answer.producer_epoch


def init_answer(
    raw: Raw, name: str | None, producer_id: int = -1, epoch: int = -1, *, timeout_ms: int = 60_000, version: int = 4
) -> Any:
    if name:
        find(raw, name)
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=producer_id, producer_epoch=epoch
    )
    return raw.ask(ApiKey.INIT_PRODUCER_ID, version, request)


def add(
    raw: Raw, name: str, producer_id: int, epoch: int, *numbers: int, topic: str = "t", version: int = 3
) -> list[str]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=numbers),),
    )
    answer = raw.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
    return [
        ErrorCode(each.partition_error_code).name
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]


def end(raw: Raw, name: str, producer_id: int, epoch: int, commit: bool, version: int) -> tuple[str, int, int]:
    request = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=commit)
    answer = raw.ask(ApiKey.END_TXN, version, request)
    return ErrorCode(answer.error_code).name, answer.producer_id, answer.producer_epoch


def batch(
    producer_id: int,
    epoch: int,
    sequence: int = 0,
    *,
    transactional: bool = True,
    key: bytes | None = None,
    value: bytes = b"v",
    timestamp_ms: int = 1_700_000_000_000,
) -> bytes:
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=transactional
    )
    builder.append(key, value, timestamp=timestamp_ms)
    return builder.build()


def produce_request(name: str | None, data: bytes, *, number: int = 0, topic: str = "t") -> ProduceRequest:
    partition = PartitionProduceData(index=number, records=data)
    return ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=5_000,
        topic_data=(TopicProduceData(name=topic, partition_data=(partition,)),),
    )


def produce(raw: Raw, name: str | None, data: bytes, *, number: int = 0, topic: str = "t", version: int = 12) -> str:
    answer = raw.ask(ApiKey.PRODUCE, version, produce_request(name, data, number=number, topic=topic))
    return ErrorCode(answer.responses[0].partition_responses[0].error_code).name
