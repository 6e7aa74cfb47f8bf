"""Offsets of partitions at their ends or at a time, and deletion of records before an offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from ixion.clients.admin.plan import Ask, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import Spread, by_topic, fault_of, of_one, spread, to_leaders
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

LATEST: Final = -1  # in place of a time: the high watermark, or the last stable offset for read_committed
EARLIEST: Final = -2  # the log start
MAX_TIMESTAMP: Final = -3  # the record with the latest timestamp (KIP-734)
OFFSETS_FROM: Final = 2  # the first version that answers with one offset and knows isolation levels
MAX_TIMESTAMP_FROM: Final = 7
CLIENT: Final = -1  # as a replica id: no replica, but a consumer
DEBUGGER: Final = -2  # as a replica id: any replica answers, up to the end of its log
ALL: Final = -1  # in place of an offset: up to the high watermark


class ListedOffset(NamedTuple):
    """The offset is -1 if no record is that young. The time is -1 for the ends."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def list_offsets(
    call: Call, times: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> Plan[Results[TopicPartition, ListedOffset]]:
    """The first offset with that time (ms since 1970) or later, or one of the ends."""
    from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsResponse

    def make(some: list[TopicPartition], _: int) -> Struct:
        return request_of({place: times[place] for place in some}, CLIENT, call.left_ms, read_committed=read_committed)

    def read(answer: Struct) -> dict[TopicPartition, ListedOffset | KafkaError]:
        assert isinstance(answer, ListOffsetsResponse)
        found: dict[TopicPartition, ListedOffset | KafkaError] = {}
        for topic in answer.topics:
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                fault = fault_of(each.error_code, None, place)
                found[place] = fault or ListedOffset(each.offset, each.timestamp, each.leader_epoch)
        return found

    has_maximum = MAX_TIMESTAMP in times.values()
    how = Spread(ApiKey.LIST_OFFSETS, oldest=MAX_TIMESTAMP_FROM if has_maximum else OFFSETS_FROM)
    return (yield from spread(call, how, times, to_leaders, make, read))


def list_replica_ends(
    call: Call, replicas: Iterable[tuple[TopicPartition, int]]
) -> Plan[dict[int, dict[TopicPartition, int]]]:
    """By broker, the end offset of each partition's replica. Replicas that do not answer are left out."""
    from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsResponse

    wanted: dict[int, list[TopicPartition]] = {}
    for place, broker in replicas:
        wanted.setdefault(broker, []).append(place)
    asks = []
    for broker, places in wanted.items():
        request = request_of(dict.fromkeys(places, LATEST), DEBUGGER, call.left_ms)
        asks.append(Ask(broker, ApiKey.LIST_OFFSETS, partial(of_one, request), OFFSETS_FROM))
    outcomes = yield asks
    found: dict[int, dict[TopicPartition, int]] = {}
    for broker, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, ListOffsetsResponse):
            found[broker] = {
                TopicPartition(topic.name, each.partition_index): each.offset
                for topic in outcome.topics
                for each in topic.partitions
                if each.error_code == 0
            }
    return found


def request_of(
    times: Mapping[TopicPartition, int], replica_id: int, timeout_ms: int, *, read_committed: bool = False
) -> Struct:
    from ixion.language.protocol.messages.k02_list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(partition_index=number, timestamp=times[TopicPartition(topic, number)])
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(times).items()
    )
    return ListOffsetsRequest(
        replica_id=replica_id, isolation_level=int(read_committed), topics=topics, timeout_ms=timeout_ms
    )


def delete_records(call: Call, before: Mapping[TopicPartition, int]) -> Plan[Results[TopicPartition, int]]:
    """Delete the records before the offsets (ALL: all records). Returns the new log start of each partition."""
    from ixion.language.protocol.messages.k21_delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        DeleteRecordsTopic,
    )

    def make(some: list[TopicPartition], _: int) -> Struct:
        topics = tuple(
            DeleteRecordsTopic(
                name=topic,
                partitions=tuple(
                    DeleteRecordsPartition(partition_index=number, offset=before[TopicPartition(topic, number)])
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(some).items()
        )
        return DeleteRecordsRequest(topics=topics, timeout_ms=call.left_ms)

    def read(answer: Struct) -> dict[TopicPartition, int | KafkaError]:
        assert isinstance(answer, DeleteRecordsResponse)
        found: dict[TopicPartition, int | KafkaError] = {}
        for topic in answer.topics:
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                fault = fault_of(each.error_code, None, place)
                found[place] = each.low_watermark if fault is None else fault
        return found

    return (yield from spread(call, Spread(ApiKey.DELETE_RECORDS), before, to_leaders, make, read))
