"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.coordinators.group.consumer.assignment import Assignment, pairs, together
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k69_consumer_group_describe import Assignment as ToldAssignment
from ixion.language.protocol.messages.k69_consumer_group_describe import DescribedGroup, Member, TopicPartitions
from ixion.timer.turns import Steps

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described(group: ConsumerGroup, topics: TopicLookup, assignors: Sequence[str]) -> Steps[DescribedGroup]:
    state, epoch, assignment_epoch = group.state, group.epoch, group.assignment_epoch
    members: list[Member] = []
    for member in list(group.members.values()):
        members.append(
            Member(
                member_id=member.member_id,
                instance_id=member.subscription.instance_id,
                rack_id=member.subscription.rack_id,
                member_epoch=member.epoch,
                client_id=member.subscription.client_id,
                client_host=member.subscription.client_host,
                subscribed_topic_names=tuple(sorted(member.subscription.topics)),
                subscribed_topic_regex=member.subscription.regex or "",
                # Partitions that it must revoke are its own until it has.
                assignment=_named(together(member.current.assigned, member.current.revoking), topics),
                target_assignment=_named(group.target(member.member_id), topics),
                member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
            )
        )
        yield
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=state.value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=group.demand.assignor(assignors),
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


def _named(assignment: Assignment, topics: TopicLookup) -> ToldAssignment:
    """Deleted topics have no name any more, and are left out."""
    return ToldAssignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers)
            for topic_id, numbers in pairs(assignment)
            if (topic := topics.by_id(topic_id)) is not None
        )
    )
