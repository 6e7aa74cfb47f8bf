"""Groups that other brokers coordinate: a list of all, and one of them as its coordinator describes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from ixion.broker.web.console.api.group_rows import (
    MOST_ASSIGNED,
    MOST_MEMBERS,
    MOST_OFFSETS,
    GroupDetail,
    GroupRow,
    MemberRow,
    OffsetRow,
    fill_in,
)
from ixion.broker.web.console.api.share_groups import ShareRow, Shares
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.response import RefusedError
from ixion.clients.assignment import read_assignment
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages import k15_describe_groups as classic
from ixion.language.protocol.messages import k69_consumer_group_describe as consumer
from ixion.language.protocol.messages import k77_share_group_describe as share
from ixion.language.protocol.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from ixion.language.protocol.messages.k90_describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from ixion.language.protocol.registry import ApiKey

ASKED_S: Final = 5.0  # answers are shown for so long
MOST_GROUPS: Final = 20_000
AT_ONCE: Final = 500  # rows that are made in one turn of the loop


class Listed(NamedTuple):
    groups: dict[str, GroupRow]
    silent: list[str]  # why some may be missing


async def listed(inside: Inside) -> Listed:
    if not inside.others.there():
        return Listed({}, [])
    return await inside.history.shared("groups of others", lambda: look(inside), ASKED_S)


async def look(inside: Inside) -> Listed:
    request = ListGroupsRequest(states_filter=(), types_filter=())
    replies = await inside.others.ask_all(ApiKey.LIST_GROUPS, request, oldest=0, newest=5)
    found = Listed({}, [])
    for broker, reply in replies.items():
        if reply.answer is None:
            found.silent.append(reply.why)
            continue
        answer = cast(ListGroupsResponse, reply.answer)
        for number, each in enumerate(answer.groups[: max(MOST_GROUPS - len(found.groups), 0)]):
            found.groups[each.group_id] = GroupRow(
                group=each.group_id,
                protocol=each.group_type.lower() or "classic",
                state=each.group_state,
                broker=broker,
                generation=None,
                members=None,
                topics=None,
                lag=None,
            )
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
    return found


async def detail_of(inside: Inside, name: str) -> GroupDetail | None:
    """None: no broker that answers has it."""
    row = (await listed(inside)).groups.get(name)
    if row is None:
        return None
    made = GroupDetail(
        group=name,
        broker=row["broker"],
        protocol=row["protocol"],
        state=row["state"],
        generation=0,
        assignor="",
        members_count=0,
        members=[],
        offsets_count=0,
        offsets=[],
        shares=None,
        lag=0,
        lags=[],
    )
    try:
        if row["protocol"] == "share":
            await asyncio.gather(describe(inside, made), add_shares(inside, made))
        else:
            await asyncio.gather(describe(inside, made), add_offsets(inside, made))
    except KafkaError as error:
        raise RefusedError(503, error.message or error.code.explanation) from error
    made["lags"] = [float(made["lag"])]
    return made


async def describe(inside: Inside, made: GroupDetail) -> None:
    name, others = made["group"], inside.others
    if made["protocol"] == "classic":
        old = await others.ask(
            made["broker"],
            ApiKey.DESCRIBE_GROUPS,
            classic.DescribeGroupsRequest(groups=(name,), include_authorized_operations=False),
            oldest=0,
            newest=5,
        )
        for group in cast(classic.DescribeGroupsResponse, old).groups:
            made["state"], made["assignor"] = group.group_state, group.protocol_data
            made["members_count"] = len(group.members)
            for each in group.members[:MOST_MEMBERS]:
                parts = read_assignment(bytes(each.member_assignment)) if group.protocol_type == "consumer" else ()
                made["members"].append(
                    MemberRow(
                        id=each.member_id,
                        instance_id=each.group_instance_id,
                        client_id=each.client_id,
                        host=each.client_host,
                        assigned=[
                            f"{part.topic}-{part.partition}"
                            for part in parts[:MOST_ASSIGNED]
                            if inside.caller.describes(part.topic)
                        ],
                        assigned_count=len(parts),
                    )
                )
                await asyncio.sleep(0)
        return
    found: Sequence[consumer.DescribedGroup | share.DescribedGroup]
    if made["protocol"] == "share":
        asked = share.ShareGroupDescribeRequest(group_ids=(name,), include_authorized_operations=False)
        answer = await others.ask(made["broker"], ApiKey.SHARE_GROUP_DESCRIBE, asked, oldest=1, newest=1)
        found = cast(share.ShareGroupDescribeResponse, answer).groups
    else:
        wanted = consumer.ConsumerGroupDescribeRequest(group_ids=(name,), include_authorized_operations=False)
        answer = await others.ask(made["broker"], ApiKey.CONSUMER_GROUP_DESCRIBE, wanted, oldest=0, newest=1)
        found = cast(consumer.ConsumerGroupDescribeResponse, answer).groups
    for described in found:
        made["state"], made["generation"] = described.group_state, described.group_epoch
        made["assignor"], made["members_count"] = described.assignor_name, len(described.members)
        for member in described.members[:MOST_MEMBERS]:
            topics = [
                topic for topic in member.assignment.topic_partitions if inside.caller.describes(topic.topic_name)
            ]
            names = [f"{topic.topic_name}-{number}" for topic in topics for number in topic.partitions]
            made["members"].append(
                MemberRow(
                    id=member.member_id,
                    instance_id=member.instance_id if isinstance(member, consumer.Member) else None,
                    client_id=member.client_id,
                    host=member.client_host,
                    assigned=names[:MOST_ASSIGNED],
                    assigned_count=len(names),
                )
            )
            await asyncio.sleep(0)


async def add_offsets(inside: Inside, made: GroupDetail) -> None:
    request = OffsetFetchRequest(group_id=made["group"], topics=None, groups=())
    answer = await inside.others.ask(made["broker"], ApiKey.OFFSET_FETCH, request, oldest=2, newest=7)
    for topic in cast(OffsetFetchResponse, answer).topics:
        for each in topic.partitions if inside.caller.describes(topic.name) else ():
            made["offsets_count"] += 1
            if len(made["offsets"]) < MOST_OFFSETS:
                replica = inside.replicas.partitions.get((topic.name, each.partition_index))
                end = None if replica is None else replica.log.high_watermark
                start = 0 if replica is None else replica.log.log_start
                lag = None if end is None else max(end - max(each.committed_offset, start), 0)
                made["lag"] += lag or 0
                made["offsets"].append(
                    OffsetRow(
                        topic=topic.name,
                        partition=each.partition_index,
                        committed=each.committed_offset,
                        end=end,
                        lag=lag,
                        committed_ms=-1,  # a coordinator does not say
                    )
                )
            if made["offsets_count"] % AT_ONCE == 0:
                await asyncio.sleep(0)
    made["offsets"].sort(key=lambda row: (row["topic"], row["partition"]))
    made["lag"] += await fill_in(inside, made["offsets"])


async def add_shares(inside: Inside, made: GroupDetail) -> None:
    group = DescribeShareGroupOffsetsRequestGroup(group_id=made["group"], topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(group,))
    answer = await inside.others.ask(made["broker"], ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request, oldest=0, newest=1)
    shares = Shares(partitions=0, rows=[], answered=True, lag=0)
    for found in cast(DescribeShareGroupOffsetsResponse, answer).groups:
        for topic in found.topics:
            for each in topic.partitions if inside.caller.describes(topic.topic_name) else ():
                shares["partitions"] += 1
                shares["answered"] = shares["answered"] and each.error_code == ErrorCode.NONE
                if len(shares["rows"]) < MOST_OFFSETS:
                    lag = each.lag if each.lag >= 0 else None
                    shares["lag"] += lag or 0
                    shares["rows"].append(
                        ShareRow(
                            topic=topic.topic_name,
                            partition=each.partition_index,
                            start=each.start_offset if each.start_offset >= 0 else None,
                            end=None,
                            lag=lag,
                            available=None,
                            acquired=None,
                            deferred=None,
                        )
                    )
    made["shares"], made["lag"] = shares, shares["lag"]
