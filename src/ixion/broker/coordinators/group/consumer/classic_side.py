"""Members that speak the classic protocol in a consumer group: how a group is migrated one client at a time.

Such a member sees its member epoch as a generation. When its target has changed, the broker starts a rebalance for this
member alone: Heartbeat answers REBALANCE_IN_PROGRESS, JoinGroup brings its subscription and the partitions it has, and
SyncGroup gives it its new ones. No member waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ixion.broker.coordinators.group.bounds import Bounds
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.classic.group import CONSUMER
from ixion.broker.coordinators.group.classic.join import ID_REQUIRED_FROM
from ixion.broker.coordinators.group.consumer.assignment import Assignment, pairs
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.engine import Engine
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.limits import GroupLimits
from ixion.broker.coordinators.group.consumer.member import ClassicSide, ConsumerMember, Subscription
from ixion.broker.coordinators.group.consumer.rules import find_member
from ixion.broker.coordinators.group.consumer.states import MemberState
from ixion.broker.coordinators.group.consumer.watch import MemberTimeouts, Remove
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupResponse
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from ixion.language.protocol.storage import decode, encode, prefix
from ixion.language.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

NEWEST_VERSION = 3  # of the consumer embedded protocol


class ClassicMembers:
    def __init__(
        self,
        engine: Engine,
        watch: MemberTimeouts,
        limits: GroupLimits,
        bounds: Bounds,
        topics: TopicLookup,
        *,
        remove: Remove,
        new_id: Callable[[], str],
    ) -> None:
        self._engine = engine
        self._watch = watch
        self._limits = limits
        self._bounds = bounds
        self._topics = topics
        self._remove = remove
        self._new_id = new_id

    def join(self, change: Change, request: JoinGroupRequest, caller: Caller) -> JoinGroupResponse:
        """KafkaError if the member may not join; nothing is changed then."""
        group = change.group
        if request.protocol_type != CONSUMER or not request.protocols:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "only consumers can join a consumer group")
        if not group.demand.supports(each.name for each in request.protocols):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "no protocol is common to all classic members")
        if not request.member_id and request.group_instance_id is None and caller.version >= ID_REQUIRED_FROM:
            raise MemberIdRequired(self._new_id())
        protocols = tuple([(each.name, each.metadata) for each in request.protocols])
        self._bounds.check_offer(protocols)
        subscription = read_subscription(protocols[0][1])
        wanted = Subscription(
            instance_id=request.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=caller.client_id,
            client_host=caller.host,
            topics=frozenset(subscription.topics),
            rebalance_timeout_ms=request.rebalance_timeout_ms if caller.version > 0 else request.session_timeout_ms,
            classic=ClassicSide(session_timeout_ms=request.session_timeout_ms, protocols=protocols),
        )
        self._bounds.check_subscription(group, request.member_id, wanted)
        member = self._member(change, request)
        if wanted.rack_id is None:
            wanted = replace(wanted, rack_id=member.subscription.rack_id)
        self._engine.update(change, member, wanted, self._owned(subscription))
        self._watch.alive(group, member)
        self._watch.joined(group, member)
        return joined_response(member.member_id, member.epoch, protocols[0][0])

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        member = self._find(group, request.member_id, request.group_instance_id, request.generation_id)
        classic = member.subscription.classic
        assert classic is not None
        name, metadata = classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        # A member that has joined learns here which partitions to revoke; it need not join again for that.
        is_told_what_to_give = member.current.state is MemberState.UNREVOKED_PARTITIONS
        if member.epoch < group.assignment_epoch and not is_told_what_to_give:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._watch.synced(group, member)
        self._watch.alive(group, member)
        version = min(max(prefix("subscription", metadata), 0), NEWEST_VERSION)
        return SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=CONSUMER,
            protocol_name=name,
            assignment=encode(to_classic_assignment(member.current.assigned, self._topics), version),
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        member = self._find(group, request.member_id, request.group_instance_id, request.generation_id)
        self._watch.alive(group, member)
        if not self._is_to_rejoin(group, member, now_ms):
            return ErrorCode.NONE
        self._watch.sent_to_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def leave(self, group: ConsumerGroup, leaving: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """All that may leave do so in one change: with the first of them the group may be downgraded."""
        codes = []
        found: dict[str, ConsumerMember] = {}
        reason = ""
        for each in leaving:
            try:
                member_id = each.member_id
                if not member_id and each.group_instance_id is not None:
                    member_id = group.static_members.get(each.group_instance_id, "")
                member = find_member(group, member_id, each.group_instance_id)
                if member.member_id in found:
                    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
                found[member.member_id] = member
                reason = reason or each.reason or "it leaves"
                codes.append(ErrorCode.NONE)
            except KafkaError as error:
                codes.append(error.code)
        if found:
            self._remove(group, list(found.values()), reason)
        return codes

    def _member(self, change: Change, request: JoinGroupRequest) -> ConsumerMember:
        group, instance_id = change.group, request.group_instance_id
        static = None if instance_id is None else group.static_member(instance_id)
        member_id = request.member_id or self._new_id()
        if static is not None and not request.member_id:
            self._watch.forget(group, static)
            return change.replace(static, member_id)
        if instance_id is not None and request.member_id:
            return find_member(group, request.member_id, instance_id)
        known = group.members.get(member_id)
        if known is None and len(group.members) >= self._limits.max_size:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        return known or ConsumerMember(member_id=member_id)

    def _find(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
        member = find_member(group, member_id, instance_id)
        if not member.is_classic:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation != member.epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def _is_to_rejoin(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> bool:
        """Its target has changed or is about to, or it must revoke partitions, or those that it waits for are free."""
        state = member.current.state
        if member.epoch < group.assignment_epoch or state is MemberState.UNREVOKED_PARTITIONS:
            return True
        if self._engine.is_target_due(group, now_ms):
            return True  # joining computes it. (Kafka waits for the heartbeat of another member, which may not exist.)
        if state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        target = group.target(member.member_id)
        return all(
            group.is_free_for(member.member_id, topic_id, number)
            for topic_id, numbers in target.items()
            for number in numbers
        )

    def _owned(self, subscription: ConsumerProtocolSubscription) -> Assignment:
        """Eager consumers revoke everything before they join, so they name no partitions."""
        found: dict[bytes, frozenset[int]] = {}
        for each in subscription.owned_partitions:
            topic = self._topics.by_name(each.topic)
            if topic is not None and each.partitions:
                found[topic.topic_id] = frozenset(each.partitions)
        return found


def joined_response(member_id: str, generation: int, protocol_name: str | None) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=generation,
        protocol_type=CONSUMER,
        protocol_name=protocol_name,
        leader="",  # no member assigns
        member_id=member_id,
        members=(),
    )


class MemberIdRequired(KafkaError):  # noqa: N818 (it is an answer more than an error)
    """The member must join again with this id."""

    def __init__(self, member_id: str) -> None:
        super().__init__(ErrorCode.MEMBER_ID_REQUIRED)
        self.member_id = member_id


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """KafkaError if it cannot be read. An unknown newer version is read as the newest known one."""
    try:
        version = min(prefix("subscription", metadata), NEWEST_VERSION)
        return decode(ConsumerProtocolSubscription, version.to_bytes(2, signed=True) + metadata[2:])
    except (DecodeError, UnsupportedVersionError) as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"a subscription cannot be read: {error}") from None


def to_classic_assignment(assignment: Assignment, topics: TopicLookup) -> ConsumerProtocolAssignment:
    named = [
        TopicPartition(topic=topic.name, partitions=numbers)
        for topic_id, numbers in pairs(assignment)
        if (topic := topics.by_id(topic_id)) is not None
    ]
    return ConsumerProtocolAssignment(assigned_partitions=tuple(named))
