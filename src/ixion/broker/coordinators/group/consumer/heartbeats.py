"""ConsumerGroupHeartbeat: the one request of the consumer protocol.

A heartbeat with epoch 0 joins, with -1 leaves, with -2 leaves temporarily (static members). With any other epoch the
member is alive, and may report a new subscription or the partitions that it has. The answer carries the member's epoch.
It carries the assignment if that changed, or if the member sent a full heartbeat, as clients do when an answer is lost.

A member is removed when it is silent for the session timeout, or when it does not revoke partitions within its
rebalance timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ixion.broker.coordinators.group.bounds import Bounds
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.consumer.assignment import Assignment, assignment_of, pairs
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.engine import Engine
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.limits import GroupLimits
from ixion.broker.coordinators.group.consumer.member import ConsumerMember, Subscription
from ixion.broker.coordinators.group.consumer.rules import (
    JOIN,
    LEAVE_FOR_A_WHILE,
    check_epoch,
    find_member,
)
from ixion.broker.coordinators.group.consumer.states import MemberState
from ixion.broker.coordinators.group.consumer.watch import MemberTimeouts, Remove
from ixion.broker.coordinators.patterns import Pattern, PatternError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    Assignment as ToldAssignment,
)
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


class ConsumerHeartbeats:
    def __init__(
        self,
        engine: Engine,
        watch: MemberTimeouts,
        limits: GroupLimits,
        bounds: Bounds,
        *,
        clock_ms: Callable[[], int],
        save: Callable[[Change], None],
        remove: Remove,
        new_id: Callable[[], str],
    ) -> None:
        """`save` writes a change that no request waits for; `remove` takes a member out of its group."""
        self._engine = engine
        self._watch = watch
        self._limits = limits
        self._bounds = bounds
        self._clock_ms = clock_ms
        self._save = save
        self._remove = remove
        self._new_id = new_id

    def beat(
        self, change: Change, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> ConsumerGroupHeartbeatResponse:
        """A member joins or stays. KafkaError if it may not; nothing is changed then."""
        group = change.group
        owned = None if request.topic_partitions is None else assignment_of(request.topic_partitions)
        if request.subscribed_topic_regex:
            try:
                Pattern(request.subscribed_topic_regex)
            except PatternError as error:
                raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
        known = group.members.get(request.member_id)
        wanted = _updated(Subscription() if known is None else known.subscription, request, caller)
        self._bounds.check_subscription(group, request.member_id, wanted)
        member = self._member(change, request, owned)
        if member is not known:  # fields that a returning instance leaves out stay as they were
            wanted = _updated(member.subscription, request, caller)
        before = member.current
        self._engine.update(change, member, wanted, owned, caller.rights)
        if member.current.revoking != before.revoking:  # other partitions to revoke: restart its rebalance timeout
            self._watch.asked_anew(group, member)
        self._watch.alive(group, member)
        tells_all = request.member_epoch == JOIN or (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and owned is not None
        )
        assigned = member.current.assigned
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._limits.heartbeat_interval_ms(group.group_id),
            assignment=_told(assigned) if tells_all or assigned != before.assigned else None,
        )

    def leave(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """A member leaves. KafkaError if the group does not have it."""
        member = find_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_FOR_A_WHILE:
            change = Change(group, self._clock_ms())
            kept = replace(member.current, epoch=LEAVE_FOR_A_WHILE, revoking={})
            # A member that returns as this instance has them from its first epoch on.
            change.move(member, replace(kept, since=dict.fromkeys(kept.held(), JOIN)))
            self._watch.asked_anew(group, member)
            self._save(change)
        else:
            self._remove(group, (member,), "it leaves")
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=0,
        )

    def _member(
        self, change: Change, request: ConsumerGroupHeartbeatRequest, owned: Assignment | None
    ) -> ConsumerMember:
        group, epoch, instance_id = change.group, request.member_epoch, request.instance_id
        if epoch != JOIN:
            member = find_member(group, request.member_id, instance_id)
            check_epoch(member, epoch, owned)
            if member.current.state is MemberState.UNKNOWN and (owned is None or owned):
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH, "the log has a member state that this broker does not know"
                )
            return member
        member_id = request.member_id or self._new_id()
        known = group.members.get(member_id)
        static = None if instance_id is None else group.static_member(instance_id)
        if known is None and static is None and len(group.members) >= self._limits.max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {group.group_id} has {len(group.members)} members; {self._limits.max_size} are allowed",
            )
        if static is not None:
            if static.is_classic or static.epoch == LEAVE_FOR_A_WHILE:
                self._watch.forget(group, static)
                return change.replace(static, member_id)
            if static is not known:
                raise KafkaError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"instance {instance_id} is member {static.member_id}, which has not left; {member_id} cannot join",
                )
        # A known member that joins again has lost its assignment, and gets all of it again.
        return known or ConsumerMember(member_id=member_id)


def _updated(known: Subscription, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Subscription:
    """Fields that the request leaves out stay as they were."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return Subscription(
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=caller.client_id,
        client_host=caller.host,
        topics=known.topics if names is None else frozenset(names),
        regex=known.regex if regex is None else regex or None,
        rebalance_timeout_ms=(
            known.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        assignor=known.assignor if request.server_assignor is None else request.server_assignor,
    )


def _told(assignment: Assignment) -> ToldAssignment:
    return ToldAssignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in pairs(assignment)
        )
    )
