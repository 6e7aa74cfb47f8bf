"""Groups, classic, consumer and share: members, assignments, offsets and lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

from ixion.broker.acl.numbers import CLUSTER, DESCRIBE, GROUP, TOPIC
from ixion.broker.coordinators.group.share.group import ShareGroup, ShareMember
from ixion.broker.web.console.api.figures import in_short_turns, matching, page_of, part
from ixion.broker.web.console.api.group_rows import (
    MOST_ASSIGNED,
    MOST_MEMBERS,
    MOST_OFFSETS,
    GroupDetail,
    GroupRow,
    Groups,
    MemberRow,
    OffsetRow,
    fill_in,
)
from ixion.broker.web.console.api.groups_elsewhere import detail_of, listed
from ixion.broker.web.console.api.share_groups import lag_here, shares
from ixion.broker.web.console.api.streams_groups import streams_members
from ixion.broker.web.console.api.topics import behind
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.console.rights import seen
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError
from ixion.language.model.acl_names import CLUSTER_NAME
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
    from ixion.broker.coordinators.group.consumer.member import ConsumerMember
    from ixion.broker.coordinators.group.shard import Group, GroupShard
    from ixion.broker.coordinators.group.streams.group import StreamsGroup


async def groups(inside: Inside, request: HttpRequest) -> Groups:
    found = await in_short_turns(all_groups(inside))
    others = await listed(inside)
    names = matching({**others.groups, **found}, request)
    if not inside.caller.sees(DESCRIBE, CLUSTER, CLUSTER_NAME):
        names = await in_short_turns(seen(inside.caller, DESCRIBE, GROUP, names))
    page = page_of(request, len(names))
    shown = part(names, page)
    mine = await in_short_turns(rows(inside, [found[name] for name in shown if name in found]))
    by_name = {row["group"]: row for row in mine}
    return Groups(
        page=page,
        groups=[by_name[name] if name in by_name else others.groups[name] for name in shown],
        silent=others.silent,
    )


Found = tuple["GroupShard", "Group"]


def all_groups(inside: Inside) -> Steps[Mapping[str, Found]]:
    found: dict[str, Found] = {}
    coordinator = inside.groups()
    if coordinator is not None:
        for shard in coordinator.shards:
            for group in [] if shard.loading else list(shard.groups.values()):
                found[group.group_id] = (shard, group)
                yield
    return found


def lag_of(inside: Inside, shard: GroupShard, group: Group) -> Steps[int]:
    if is_share(group):
        return (yield from lag_here(inside, group))
    offsets = shard.offsets.get(group.group_id)
    lag = 0
    for (topic, number), each in [] if offsets is None else list(offsets.committed.items()):
        lag += behind(inside, topic, number, each.offset) or 0
        yield
    return lag


def rows(inside: Inside, found: Sequence[Found]) -> Steps[list[GroupRow]]:
    made: list[GroupRow] = []
    for shard, group in found:
        offsets = shard.offsets.get(group.group_id)
        committed = {} if offsets is None else offsets.committed
        lag = yield from lag_of(inside, shard, group)
        made.append(
            GroupRow(
                group=group.group_id,
                protocol=protocol_of(group),
                state=group.state.value,
                broker=inside.node_id,
                generation=generation_of(group),
                members=len(group.members),
                topics=len(group.known) if is_share(group) else len({topic for topic, _ in committed}),
                lag=lag,
            )
        )
        yield
    return made


def is_share(group: Group) -> TypeGuard[ShareGroup]:
    return isinstance(group, ShareGroup)


def is_streams(group: Group) -> TypeGuard[StreamsGroup]:
    return hasattr(group, "topology")  # its code is imported with the first group


def protocol_of(group: Group) -> str:
    if is_share(group):
        return "share"
    if is_streams(group):
        return "streams"
    return "classic" if hasattr(group, "generation") else "consumer"


def generation_of(group: Group) -> int:
    """Of a consumer or share group, its epoch."""
    return int(getattr(group, "generation", 0) or getattr(group, "epoch", 0))


async def group(inside: Inside, request: HttpRequest) -> GroupDetail:
    name = request.at["group"]
    coordinator = inside.groups()
    shard = None if coordinator is None else coordinator.shards.at(coordinator.shards.partition_for(name))
    found = None if shard is None or shard.loading else shard.groups.get(name)
    if shard is None or found is None:
        elsewhere = await detail_of(inside, name)
        if elsewhere is None:
            raise RefusedError(404, f"there is no group {name[:200]!r}")
        return elsewhere
    made = await in_short_turns(detail(inside, shard, found))
    made["lag"] += await fill_in(inside, made["offsets"])
    if is_share(found):
        made["shares"] = in_flight = await shares(inside, found)
        made["lag"] = in_flight["lag"]
    made["lags"] = inside.history.lags.of(name, made["lag"])
    return made


def detail(inside: Inside, shard: GroupShard, found: Group) -> Steps[GroupDetail]:
    from ixion.broker.coordinators.group.classic.group import ClassicGroup
    from ixion.broker.coordinators.group.streams.group import StreamsGroup

    offsets = shard.offsets.get(found.group_id)
    committed = [] if offsets is None else sorted(offsets.committed.items())
    committed = yield from seen(inside.caller, DESCRIBE, TOPIC, committed, lambda each: each[0][0])
    lines: list[OffsetRow] = []
    total = 0
    for (topic, number), each in committed:
        replica = inside.replicas.partitions.get((topic, number))
        lag = behind(inside, topic, number, each.offset)
        total += lag or 0
        if len(lines) < MOST_OFFSETS:
            lines.append(
                OffsetRow(
                    topic=topic,
                    partition=number,
                    committed=each.offset,
                    end=None if replica is None else replica.log.high_watermark,
                    lag=lag,
                    committed_ms=each.commit_ms,
                )
            )
        yield
    if isinstance(found, ClassicGroup):
        members = yield from classic_members(inside, found)
    elif isinstance(found, StreamsGroup):
        members = yield from streams_members(inside, found, MOST_MEMBERS, MOST_ASSIGNED)
    else:
        members = yield from members_of(inside, found)
    return GroupDetail(
        group=found.group_id,
        broker=inside.node_id,
        protocol=protocol_of(found),
        state=found.state.value,
        generation=generation_of(found),
        assignor=(found.protocol_name or "") if isinstance(found, ClassicGroup) else "",
        members_count=len(found.members),
        members=members,
        offsets_count=len(committed),
        offsets=lines,
        shares=None,
        lag=total,
        lags=[],
    )


def classic_members(inside: Inside, group: Group) -> Steps[list[MemberRow]]:
    from ixion.broker.coordinators.group.classic.group import ClassicGroup
    from ixion.clients.assignment import read_assignment

    assert isinstance(group, ClassicGroup)
    made: list[MemberRow] = []
    for member in list(group.members.values())[:MOST_MEMBERS]:
        assigned = read_assignment(member.assignment) if group.protocol_type == "consumer" else ()
        made.append(
            MemberRow(
                id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.client_host,
                assigned=[
                    f"{each.topic}-{each.partition}"
                    for each in assigned[:MOST_ASSIGNED]
                    if inside.caller.describes(each.topic)
                ],
                assigned_count=len(assigned),
            )
        )
        yield
    return made


def members_of(inside: Inside, group: ConsumerGroup | ShareGroup) -> Steps[list[MemberRow]]:
    made: list[MemberRow] = []
    members: list[ConsumerMember | ShareMember] = [*group.members.values()]
    for member in members[:MOST_MEMBERS]:
        about = member if isinstance(member, ShareMember) else member.subscription
        found = member.assigned if isinstance(member, ShareMember) else member.current.assigned
        assigned: list[str] = []
        count = 0
        for topic_id, numbers in found.items():
            topic = inside.image.ids.get(topic_id)
            count += len(numbers)
            name = topic.name if topic else "?"
            if topic is not None and not inside.caller.describes(name):
                continue
            assigned += [f"{name}-{number}" for number in sorted(numbers)[: MOST_ASSIGNED - len(assigned)]]
        made.append(
            MemberRow(
                id=member.member_id,
                instance_id=None if isinstance(member, ShareMember) else member.subscription.instance_id,
                client_id=about.client_id,
                host=about.client_host,
                assigned=assigned,
                assigned_count=count,
            )
        )
        yield
    return made
