"""ConsumerGroupDescribe (69), versions 0 and 1: the state and the members of consumer groups (KIP-848).

Version 1 shows which members use the classic protocol (KIP-1099). A classic group gets GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, sorted_out
from ixion.broker.apis.operations import group_operations
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ixion.language.protocol.messages.k69_consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"group_ids": once()}


def make(services: Services) -> Handle:
    consumer = services.groups.consumer

    def describe(group_id: str, with_operations: bool, rights: Rights | None) -> Steps[DescribedGroup]:
        found = yield from consumer.describe(group_id)
        if with_operations and found.error_code == ErrorCode.NONE:
            return found.replace(authorized_operations=group_operations(rights, group_id))
        return found

    def handle(call: Call) -> Steps[ConsumerGroupDescribeResponse]:
        request = cast(ConsumerGroupDescribeRequest, call.body)
        groups: list[DescribedGroup] = []
        for group_id in request.group_ids:
            groups.append((yield from describe(group_id, request.include_authorized_operations, call.rights)))
            yield
        return ConsumerGroupDescribeResponse(groups=tuple(groups))

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the group and on every topic of its members; otherwise the whole group is refused."""
    request = cast(ConsumerGroupDescribeRequest, call.body)
    kept, others = yield from sorted_out(request.group_ids, lambda group: rights.may(DESCRIBE, GROUP, group))
    call.narrow(request.replace(group_ids=tuple(kept)))
    refused = [refused_group(group, NO_GROUP) for group in others]

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(ConsumerGroupDescribeResponse, body)
        groups: list[DescribedConsumerGroup] = []
        for group in answer.groups:
            for name in (yield from topics_of_group(group)):
                if not rights.sees(DESCRIBE, TOPIC, name):
                    group = refused_group(group.group_id, NO_TOPIC)
                    break
            groups.append(group)
            yield
        return answer.replace(groups=(*groups, *refused))

    call.amend = amend
    return None


RIGHTS: Final = guard


def topics_of_group(group: DescribedConsumerGroup) -> Steps[set[str]]:
    names: set[str] = set()
    for member in group.members:
        names.update(member.subscribed_topic_names)
        for assignment in (member.assignment, member.target_assignment):
            names.update(assigned(assignment))
        yield
    return names


def assigned(assignment: Assignment) -> list[str]:
    return [each.topic_name for each in assignment.topic_partitions]


def refused_group(group_id: str, code: ErrorCode) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        error_code=code,
        error_message=code.explanation,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )
