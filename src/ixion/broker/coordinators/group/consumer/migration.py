"""A group changes its protocol while it has members, in both directions.

Up: a member of the consumer protocol joins a classic group. The classic members become members of a consumer group,
with the partitions of their assignments and the generation as their epoch, and continue to speak classic.

Down: the last member of the consumer protocol leaves. The others become a classic group in a new rebalance.

Offsets are not touched; they belong to the group's name.
"""

from __future__ import annotations

from collections.abc import Collection

from ixion.broker.coordinators.group.classic.group import CONSUMER, ClassicGroup
from ixion.broker.coordinators.group.classic.member import ClassicMember
from ixion.broker.coordinators.group.classic.states import STABLE
from ixion.broker.coordinators.group.consumer.assignment import NOTHING, Assignment
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.classic_side import (
    NEWEST_VERSION,
    read_subscription,
    to_classic_assignment,
)
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.member import ClassicSide, ConsumerMember, Subscription
from ixion.broker.coordinators.group.consumer.reconcile import Current
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.language.protocol.storage import decode, encode, prefix
from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolAssignment


def to_consumer_group(classic: ClassicGroup, topics: TopicLookup, now_ms: int) -> Change:
    """KafkaError if a member's subscription cannot be read; the classic group is left as it is.

    The first epoch is the last generation. The targets are the leader's assignment; the group may replace them at once.
    """
    group = ConsumerGroup(classic.group_id)
    change = Change(group, now_ms)
    members = []
    for each in classic.members.values():
        subscription = read_subscription(each.protocols[0][1])
        assigned = _assignment(each.assignment, topics)
        member = ConsumerMember(
            member_id=each.member_id,
            subscription=Subscription(
                instance_id=each.instance_id,
                rack_id=subscription.rack_id,
                client_id=each.client_id,
                client_host=each.client_host,
                topics=frozenset(subscription.topics),
                rebalance_timeout_ms=each.rebalance_timeout_ms,
                classic=ClassicSide(session_timeout_ms=each.session_timeout_ms, protocols=each.protocols),
            ),
        )
        current = Current(epoch=classic.generation, previous_epoch=classic.generation, assigned=assigned)
        members.append((member, current))
    for member, current in members:
        change.subscribe(member, member.subscription)
        change.move(member, current)
    change.set_epoch(classic.generation, group.hash_topics(topics))
    change.set_targets({member.member_id: current.assigned for member, current in members}, group.epoch, 0)
    return change


def to_classic_group(
    group: ConsumerGroup, leaving: Collection[ConsumerMember], topics: TopicLookup, now_ms: int
) -> ClassicGroup:
    """The members of `group` besides those that leave. All of them speak classic, with a protocol in common."""
    gone = {each.member_id for each in leaving}
    classic = ClassicGroup(group.group_id, now_ms, STABLE)
    for each in group.members.values():
        side = each.subscription.classic
        if side is None or each.member_id in gone:
            continue
        version = min(max(prefix("subscription", side.protocols[0][1]), 0), NEWEST_VERSION)
        member = ClassicMember(
            member_id=each.member_id,
            instance_id=each.subscription.instance_id,
            client_id=each.subscription.client_id,
            client_host=each.subscription.client_host,
            rebalance_timeout_ms=each.subscription.rebalance_timeout_ms,
            session_timeout_ms=side.session_timeout_ms,
            protocol_type=CONSUMER,
            protocols=side.protocols,
            assignment=encode(to_classic_assignment(each.current.assigned, topics), version),
        )
        classic.add(member)
    classic.generation = group.epoch
    classic.protocol_name = classic.elect_protocol()
    classic.find_subscribed()
    return classic


def _assignment(data: bytes, topics: TopicLookup) -> Assignment:
    if not data:
        return NOTHING
    try:
        version = min(prefix("assignment", data), NEWEST_VERSION)
        read = decode(ConsumerProtocolAssignment, version.to_bytes(2, signed=True) + data[2:])
    except (DecodeError, UnsupportedVersionError):
        return NOTHING  # not a consumer's assignment: the member keeps nothing and gets new partitions
    found: dict[bytes, frozenset[int]] = {}
    for each in read.assigned_partitions:
        topic = topics.by_name(each.topic)
        if topic is not None and each.partitions:
            found[topic.topic_id] = frozenset(each.partitions)
    return found
