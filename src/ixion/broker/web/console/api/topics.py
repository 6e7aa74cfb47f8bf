"""Topics, their partitions, and the groups that read them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypedDict

from ixion.broker.acl.numbers import DESCRIBE, DESCRIBE_CONFIGS, GROUP, TOPIC
from ixion.broker.replica.internal_topic import INTERNAL
from ixion.broker.web.console.api.figures import Page, in_short_turns, matching, page_of, part
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.console.rights import seen
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError
from ixion.config.topic import TOPIC_SETTINGS
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.metadata.image import PartitionImage, TopicImage

MOST_GROUPS: Final = 50  # shown with a topic
ASKED_S: Final = 3.0  # answers of other brokers are shown for so long


class TopicRow(TypedDict):
    name: str
    internal: bool
    partitions: int
    replicas: int  # of its first partition
    under_replicated: int
    offline: int
    records: int | None  # offsets between start and end on this broker; None: it has no replica
    bytes: int | None
    delayed: int  # records that wait for their time


class Topics(TypedDict):
    page: Page
    topics: list[TopicRow]


class PartitionRow(TypedDict):
    number: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    start: int | None  # None: no replica on this broker, and no answer of its leader
    end: int | None
    high_watermark: int | None
    stable: int | None
    bytes: int | None
    segments: int | None
    producers: int | None
    silent: bool  # there is no replica here, and its leader did not answer


class GroupLag(TypedDict):
    group: str
    partitions: int  # with a committed offset
    lag: int


class SettingRow(TypedDict):
    name: str
    value: str | None
    source: str


class Topic(TypedDict):
    name: str
    id: str
    internal: bool
    page: Page
    partitions: list[PartitionRow]
    settings: list[SettingRow]  # that differ from the broker's
    groups: list[GroupLag]


async def topics(inside: Inside, request: HttpRequest) -> Topics:
    names = await in_short_turns(seen(inside.caller, DESCRIBE, TOPIC, matching(inside.image.topics, request)))
    page = page_of(request, len(names))
    shown = part(names, page)
    name = f"{inside.caller.scope}topics {page['query'].lower()!r} {page['start']} {page['limit']}"
    return Topics(page=page, topics=await inside.history.shared(name, lambda: in_short_turns(rows(inside, shown))))


def rows(inside: Inside, names: Sequence[str]) -> Steps[list[TopicRow]]:
    found: list[TopicRow] = []
    delayed = inside.replicas.delays.pending()
    for name in names:
        topic = inside.image.topics.get(name)
        if topic is None:
            continue
        records = size = here = waiting = 0
        for partition in list(topic.partitions):
            replica = inside.replicas.partitions.get((name, partition.number))
            if replica is not None:
                here += 1
                records += replica.log.end_offset - replica.log.log_start
                size += replica.log.size
            schedule = inside.schedules.get((name, partition.number))
            if schedule is not None and schedule.state is not None:
                waiting += schedule.state.count
            waiting += delayed.get((name, partition.number), 0)
            yield
        found.append(
            TopicRow(
                name=name,
                internal=name in INTERNAL,
                partitions=len(topic.partitions),
                replicas=len(topic.partitions[0].replicas) if topic.partitions else 0,
                under_replicated=sum(0 < len(each.isr) < len(each.replicas) for each in topic.partitions),
                offline=sum(each.leader < 0 for each in topic.partitions),
                records=records if here else None,
                bytes=size if here else None,
                delayed=waiting,
            )
        )
    return found


def known(inside: Inside, request: HttpRequest) -> TopicImage:
    found = inside.image.topics.get(request.at["topic"])
    if found is None:
        raise RefusedError(404, f"there is no topic {request.at['topic'][:249]!r}")
    return found


async def topic(inside: Inside, request: HttpRequest) -> Topic:
    found = known(inside, request)
    page = page_of(request, len(found.partitions))
    shown = found.partitions[page["start"] : page["start"] + page["limit"]]
    partitions = [partition_row(inside, found.name, each) for each in shown]
    await fill_in(inside, found, [each for each in partitions if each["end"] is None])
    return Topic(
        name=found.name,
        id=found.topic_id.hex(),
        internal=found.name in INTERNAL,
        page=page,
        partitions=partitions,
        settings=[
            SettingRow(name=each.name, value=each.value, source=each.source.name)
            for name in TOPIC_SETTINGS
            if name in found.config
            and inside.caller.sees(DESCRIBE_CONFIGS, TOPIC, found.name)
            and (each := inside.config.describe_topic(name, found.config))
        ],
        groups=await in_short_turns(lags(inside, found)),
    )


async def fill_in(inside: Inside, topic: TopicImage, rows: list[PartitionRow]) -> None:
    """What leaders on other brokers say of partitions that have no replica here."""
    from ixion.broker.web.console.api.elsewhere import ranges, sizes

    numbers = [each["number"] for each in rows]
    if not numbers or not inside.others.there():
        return
    name = f"elsewhere {topic.name!r} {numbers[0]} {numbers[-1]}"
    found, bytes_of = await inside.history.shared(
        name, lambda: asyncio.gather(ranges(inside, topic, numbers), sizes(inside, topic, numbers)), ASKED_S
    )
    for row in rows:
        part = found.found.get(row["number"])
        row["silent"] = part is None
        row["bytes"] = bytes_of.get(row["number"])
        if part is not None:
            row["start"], row["end"] = part
            row["high_watermark"] = part.end


def partition_row(inside: Inside, name: str, partition: PartitionImage) -> PartitionRow:
    replica = inside.replicas.partitions.get((name, partition.number))
    log = None if replica is None else replica.log
    return PartitionRow(
        number=partition.number,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        offline=list(partition.offline),
        start=None if log is None else log.log_start,
        end=None if log is None else log.end_offset,
        high_watermark=None if log is None else log.high_watermark,
        stable=None if log is None else log.last_stable_offset,
        bytes=None if log is None else log.size,
        segments=None if log is None else len(log.segments),
        producers=None if log is None else len(log.producers.producers),
        silent=False,
    )


def lags(inside: Inside, topic: TopicImage) -> Steps[list[GroupLag]]:
    """The groups that this broker coordinates and that have committed offsets of the topic."""
    coordinator = inside.groups()
    found: list[GroupLag] = []
    if coordinator is None:
        return found
    for shard in coordinator.shards:
        for group_id, offsets in list(shard.offsets.items()):
            lag = partitions = 0
            for partition in topic.partitions if inside.caller.sees(DESCRIBE, GROUP, group_id) else ():
                committed = offsets.committed.get((topic.name, partition.number))
                if committed is not None:
                    partitions += 1
                    lag += behind(inside, topic.name, partition.number, committed.offset) or 0
            if partitions:
                found.append(GroupLag(group=group_id, partitions=partitions, lag=lag))
                if len(found) >= MOST_GROUPS:
                    return found
            yield
    found.sort(key=lambda each: -each["lag"])
    return found


def behind(inside: Inside, topic: str, number: int, offset: int) -> int | None:
    """How many records a group has not read; None if this broker has no replica of the partition."""
    replica = inside.replicas.partitions.get((topic, number))
    return None if replica is None else max(replica.log.high_watermark - max(offset, replica.log.log_start), 0)
