"""StreamsGroupDescribe (89), version 0: the state, the topology and the members of streams groups (KIP-1071).

Any other group gets GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, sorted_out
from ixion.broker.apis.operations import group_operations
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.group.streams.describe import not_described
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k89_streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"group_ids": once()}


def make(services: Services) -> Handle:
    streams = services.groups.streams

    def handle(call: Call) -> Steps[StreamsGroupDescribeResponse]:
        request = cast(StreamsGroupDescribeRequest, call.body)
        groups: list[DescribedGroup] = []
        for group_id in request.group_ids:
            found = yield from streams.describe(group_id)
            if request.include_authorized_operations and found.error_code == ErrorCode.NONE:
                found = found.replace(authorized_operations=group_operations(call.rights, group_id))
            groups.append(found)
            yield
        return StreamsGroupDescribeResponse(groups=tuple(groups))

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the group and on every topic of its topology; otherwise the whole group is refused."""
    request = cast(StreamsGroupDescribeRequest, call.body)
    kept, others = yield from sorted_out(request.group_ids, lambda group: rights.may(DESCRIBE, GROUP, group))
    call.narrow(request.replace(group_ids=tuple(kept)))
    refused_groups = [not_described(group, NO_GROUP, NO_GROUP.explanation) for group in others]

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(StreamsGroupDescribeResponse, body)
        groups: list[DescribedGroup] = []
        for group in answer.groups:
            for name in topics_of(group):
                if not rights.sees(DESCRIBE, TOPIC, name):
                    group = not_described(group.group_id, NO_TOPIC, NO_TOPIC.explanation)
                    break
                yield
            groups.append(group)
            yield
        return answer.replace(groups=(*groups, *refused_groups))

    call.amend = amend
    return None


RIGHTS: Final = guard


def topics_of(group: DescribedGroup) -> Iterator[str]:
    topology = group.topology
    for each in (topology.subtopologies or ()) if topology is not None else ():
        yield from each.source_topics
        yield from each.repartition_sink_topics
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics):
            yield topic.name
