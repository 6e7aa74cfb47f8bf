"""When a group changes its protocol, and what is written then. (How: see `consumer.migration`.)

change         a consumer heartbeat finds a classic group with members: upgrade, if the policy allows it
downgrade      the last member of the consumer protocol leaves, and the others speak classic
replace_empty  a classic member joins a consumer group without members
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.coordinators.group.classic.group import CONSUMER, ClassicGroup
from ixion.coordinators.group.classic.rebalance import Rebalance
from ixion.coordinators.group.classic.states import EMPTY
from ixion.coordinators.group.consumer.change import Change
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.consumer.limits import GroupLimits
from ixion.coordinators.group.consumer.member import ConsumerMember
from ixion.coordinators.group.consumer.migration import to_classic_group, to_consumer_group
from ixion.coordinators.group.consumer.records import group_tombstones
from ixion.coordinators.group.consumer.rules import JOIN
from ixion.coordinators.group.consumer_writes import ConsumerWrites
from ixion.coordinators.group.records import group_record, group_tombstone
from ixion.coordinators.group.shard import GroupShard
from ixion.coordinators.group.topics import TopicLookup
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


class Migrations:
    def __init__(
        self,
        rebalance: Rebalance,
        topics: TopicLookup,
        limits: GroupLimits,
        writes: ConsumerWrites,
        *,
        clock_ms: Callable[[], int],
        classic_max_size: Callable[[], int],
        resume: Callable[[ConsumerGroup], None],
        unload: Callable[[ConsumerGroup], None],
    ) -> None:
        """`resume` starts the session timeouts of a group's members, `unload` stops them."""
        self._rebalance = rebalance
        self._topics = topics
        self._limits = limits
        self._writes = writes
        self._clock_ms = clock_ms
        self._classic_max_size = classic_max_size
        self._resume = resume
        self._unload = unload

    def change(
        self, shard: GroupShard, request: ConsumerGroupHeartbeatRequest
    ) -> tuple[Change, ClassicGroup | ConsumerGroup | None]:
        """A change for the heartbeat, and the present group. Nothing is replaced yet."""
        now_ms = self._clock_ms()
        group = shard.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return Change(group, now_ms), group
        if request.member_epoch != JOIN:
            raise no_consumer_group(request.group_id)
        if group is None or group.state is EMPTY:
            return Change(ConsumerGroup(request.group_id), now_ms), group
        if (
            not self._limits.may_upgrade
            or group.protocol_type != CONSUMER
            or len(group.members) >= self._limits.max_size
        ):
            raise no_consumer_group(request.group_id)
        try:
            return to_consumer_group(group, self._topics, now_ms), group
        except KafkaError as error:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"the group cannot be upgraded: {error.message}") from None

    def upgraded(self, change: Change, before: ClassicGroup) -> None:
        """Put the consumer group in the place of the classic one."""
        if before.protocol_type is not None:
            change.records.insert(0, group_tombstone(before.group_id))
        self._rebalance.unload(before, ErrorCode.REBALANCE_IN_PROGRESS)
        self._resume(change.group)

    def is_downgrade(self, group: ConsumerGroup, leaving: ConsumerMember) -> bool:
        others = len(group.members) - 1
        return (
            others > 0
            and not leaving.is_classic
            and group.demand.classic_members == others
            and self._limits.may_downgrade
            and others <= self._classic_max_size()
        )

    def downgrade(self, shard: GroupShard, group: ConsumerGroup, leaving: ConsumerMember, reason: str) -> None:
        records = group_tombstones(group)
        group.remove(leaving.member_id)
        classic = to_classic_group(group, self._topics, self._clock_ms())
        self._replace(shard, group, classic)
        assignments = {each.member_id: each.assignment for each in classic.members.values()}
        self._writes.write_quietly(shard, [*records, group_record(classic, assignments)])
        self._rebalance.resume(classic)
        self._rebalance.prepare_if_possible(classic, f"the last member of the consumer protocol is gone: {reason}")

    def replace_empty(self, shard: GroupShard, group: ConsumerGroup) -> ClassicGroup:
        """Replace a consumer group without members by a classic one."""
        classic = ClassicGroup(group.group_id, self._clock_ms())
        self._replace(shard, group, classic)
        self._writes.write_quietly(shard, group_tombstones(group))
        return classic

    def _replace(self, shard: GroupShard, group: ConsumerGroup, classic: ClassicGroup) -> None:
        self._unload(group)
        shard.groups[group.group_id] = classic


def no_consumer_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} is not of the consumer protocol")
