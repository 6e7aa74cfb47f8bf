"""Streams groups: their members, with the tasks of each, such as 0_1: partition 1 of subtopology 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.broker.web.console.api.group_rows import MemberRow
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.coordinators.group.streams.group import StreamsGroup
    from ixion.broker.web.console.inside import Inside


def streams_members(inside: Inside, group: StreamsGroup, most: int, most_assigned: int) -> Steps[list[MemberRow]]:
    """Tasks are shown to a client that may see all topics of the topology, as in StreamsGroupDescribe."""
    is_shown = True
    for topic in [] if group.topology is None else group.topology.required:
        is_shown = is_shown and inside.caller.describes(topic)
        yield
    made: list[MemberRow] = []
    for member in list(group.members.values())[:most]:
        assigned = member.current.assigned
        names = [f"{subtopology}_{number}" for subtopology, number in sorted(assigned.each())[:most_assigned]]
        made.append(
            MemberRow(
                id=member.member_id,
                instance_id=member.profile.instance_id,
                client_id=member.profile.client_id,
                host=member.profile.client_host,
                assigned=names if is_shown else [],
                assigned_count=assigned.size,
            )
        )
        yield
    return made
