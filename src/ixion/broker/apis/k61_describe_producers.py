"""DescribeProducers, 0: the producers in a partition's state, and where their open transactions begin (KIP-664).

Every replica responds, not only the leader: Kafka's tool searches for hanging transactions broker by broker.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import READ
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_TOPIC, on_topics
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.log.log import Log
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ixion.timer.turns import Steps

REPEATS: Final = {"topics": once("name", partition_indexes=NUMBERS)}
RIGHTS: Final = on_topics(
    READ,
    lambda number: PartitionResponse(
        partition_index=number, error_code=NO_TOPIC, error_message=NO_TOPIC.explanation, active_producers=()
    ),
    lambda topic, lines: TopicResponse(name=topic.name, partitions=lines),
    partitions="partition_indexes",
)


def make(services: Services) -> Handle:
    replicas = services.replicas

    def handle(call: Call) -> Steps[DescribeProducersResponse]:
        request = cast(DescribeProducersRequest, call.body)
        topics = []
        for topic in request.topics:
            described = []
            for number in topic.partition_indexes:
                described.append(describe(topic.name, number))
                yield
            topics.append(TopicResponse(name=topic.name, partitions=tuple(described)))
        return DescribeProducersResponse(topics=tuple(topics))

    def describe(topic: str, number: int) -> PartitionResponse:
        partition = replicas.partition(topic, number)
        if partition is None:
            return _refuse(number, replicas.why_missing(topic, number))
        return PartitionResponse(partition_index=number, error_code=0, active_producers=_producers(partition.log))

    return handle


def _producers(log: Log) -> tuple[ProducerState, ...]:
    with log.lock:
        entries = list(log.producers.producers.values())
    return tuple(
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.txn_first_offset,
        )
        for entry in entries
    )


def _refuse(number: int, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(
        partition_index=number, error_code=code, error_message=code.explanation, active_producers=()
    )
