"""Partitions and records that other brokers lead, asked of their leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.broker.web.console.inside import Inside
from ixion.clients.starts import EARLIEST, LATEST
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.messages.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.layout import Buffer

if TYPE_CHECKING:
    from ixion.broker.metadata.image import TopicImage

BY_NAME: Final = 12  # the newest version of Fetch that names topics


class Range(NamedTuple):
    start: int
    end: int


class Ranges(NamedTuple):
    found: dict[int, Range]  # by partition
    silent: list[int]  # partitions without a leader, or whose leader does not answer


def by_leader(topic: TopicImage, numbers: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number in numbers:
        found.setdefault(topic.partitions[number].leader, []).append(number)
    return found


async def offsets(inside: Inside, leader: int, topic: str, numbers: Sequence[int], time_ms: int) -> dict[int, int]:
    """The offset of a time, or of an end, in each partition; -1: none. KafkaError if the leader does not answer."""
    partitions = tuple(ListOffsetsPartition(partition_index=each, timestamp=time_ms) for each in numbers)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=(ListOffsetsTopic(name=topic, partitions=partitions),),
        timeout_ms=2_000,
    )
    answer = await inside.others.ask(leader, ApiKey.LIST_OFFSETS, request, oldest=1, newest=10)
    return {
        each.partition_index: each.offset
        for found in cast(ListOffsetsResponse, answer).topics
        for each in found.partitions
        if each.error_code == ErrorCode.NONE
    }


async def ranges(inside: Inside, topic: TopicImage, numbers: Sequence[int]) -> Ranges:
    """From the first record to behind the last one, of partitions that others lead."""

    async def one(leader: int, wanted: list[int]) -> tuple[list[int], dict[int, int], dict[int, int]]:
        try:
            firsts, lasts = await asyncio.gather(
                offsets(inside, leader, topic.name, wanted, EARLIEST),
                offsets(inside, leader, topic.name, wanted, LATEST),
            )
        except KafkaError:
            return wanted, {}, {}
        return wanted, firsts, lasts

    leaders = by_leader(topic, numbers)
    answers = await asyncio.gather(*(one(leader, wanted) for leader, wanted in leaders.items() if leader >= 0))
    found = {
        number: Range(firsts[number], max(lasts[number], firsts[number]))
        for wanted, firsts, lasts in answers
        for number in wanted
        if firsts.get(number, -1) >= 0 and number in lasts
    }
    return Ranges(found, [each for each in numbers if each not in found])


async def sizes(inside: Inside, topic: TopicImage, numbers: Sequence[int]) -> dict[int, int]:
    """Bytes of partitions, from their leaders."""

    async def one(leader: int, wanted: list[int]) -> dict[int, int]:
        request = DescribeLogDirsRequest(topics=(DescribableLogDirTopic(topic=topic.name, partitions=tuple(wanted)),))
        try:
            answer = await inside.others.ask(leader, ApiKey.DESCRIBE_LOG_DIRS, request, oldest=1, newest=4)
        except KafkaError:
            return {}
        return {
            each.partition_index: each.partition_size
            for directory in cast(DescribeLogDirsResponse, answer).results
            for found in directory.topics
            for each in found.partitions
            if not each.is_future_key
        }

    leaders = by_leader(topic, numbers)
    made: dict[int, int] = {}
    for found in await asyncio.gather(*(one(leader, wanted) for leader, wanted in leaders.items() if leader >= 0)):
        made |= found
    return made


async def read(inside: Inside, leader: int, topic: str, number: int, offset: int, size: int) -> FetchResult:
    """As `records.read`, of another broker. KafkaError if it does not answer."""
    partition = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=size)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=size,
        isolation_level=0,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    answer = cast(FetchResponse, await inside.others.ask(leader, ApiKey.FETCH, request, oldest=4, newest=BY_NAME))
    result = FetchResult(FetchWish(topic, b"", number, offset, size))
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    for found in answer.responses:
        for each in found.partitions:
            result.code = ErrorCode(each.error_code)
            result.high_watermark, result.log_start = each.high_watermark, each.log_start_offset
            result.records = bytes(cast(Buffer, each.records or b""))
    return result
