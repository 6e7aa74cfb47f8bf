"""A share group as ShareGroupDescribe shows it."""

from __future__ import annotations

from ixion.broker.coordinators.group.consumer.assignment import pairs
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k77_share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ixion.timer.turns import Steps

ASSIGNOR = "simple"


def described(group: ShareGroup, topics: TopicLookup) -> Steps[DescribedGroup]:
    state, epoch, assignment_epoch = group.state, group.epoch, group.assignment_epoch
    members: list[Member] = []
    for member in list(group.members.values()):
        assigned = tuple(
            TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers)
            for topic_id, numbers in pairs(member.assigned)
            if (topic := topics.by_id(topic_id)) is not None  # a deleted topic has no name any more
        )
        members.append(
            Member(
                member_id=member.member_id,
                rack_id=member.rack_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=tuple(sorted(member.topics)),
                assignment=Assignment(topic_partitions=assigned),
            )
        )
        yield
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=state.value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=ASSIGNOR,
        members=tuple(members),
    )


def not_described(group_id: str, code: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )
