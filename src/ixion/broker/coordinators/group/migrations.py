"""When a group changes its protocol, and what is written then. (How: see `consumer.migration`.)

change         a consumer heartbeat finds a classic group with members: upgrade, if the policy allows it
downgrade      the last member of the consumer protocol leaves, and the others speak classic
replaced       the same, because a classic member has taken over its instance id
replace_empty  a classic member joins a consumer group without members

Every check comes first, and the new group is made beside the old one. Then it takes its place, and the records are
written; if they cannot be, the partition is loaded again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ixion.broker.coordinators.group.classic.group import CONSUMER, ClassicGroup
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic.states import EMPTY
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.limits import GroupLimits
from ixion.broker.coordinators.group.consumer.member import ConsumerMember
from ixion.broker.coordinators.group.consumer.migration import to_classic_group, to_consumer_group
from ixion.broker.coordinators.group.consumer.records import group_tombstones
from ixion.broker.coordinators.group.consumer.rules import JOIN
from ixion.broker.coordinators.group.consumer.states import ConsumerGroupState
from ixion.broker.coordinators.group.consumer_writes import ConsumerWrites
from ixion.broker.coordinators.group.records import Entry, group_record, group_tombstone
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


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
        if request.member_epoch != JOIN or isinstance(group, ShareGroup | StreamsGroup):
            raise no_consumer_group(request.group_id)
        if group is None or group.state is EMPTY:
            return Change(ConsumerGroup(request.group_id), now_ms), group
        if (
            not self._limits.may_upgrade
            or group.protocol_type != CONSUMER
            or len(group.members) > self._limits.max_size
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

    def is_downgrade(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Whether all that stay speak classic, because the last members of the consumer protocol leave.

        Members that an older version has let in may have no protocol in common; they stay a consumer group.
        """
        staying = len(group.members) - len(leaving)
        classic = group.demand.classic_members - sum(each.is_classic for each in leaving)
        return (
            staying > 0
            and staying == classic
            and any(not each.is_classic for each in leaving)
            and self._may_be_classic(group, staying)
        )

    def downgrade(
        self, shard: GroupShard, group: ConsumerGroup, leaving: Collection[ConsumerMember], reason: str
    ) -> None:
        classic = to_classic_group(group, leaving, self._topics, self._clock_ms())
        records = [*group_tombstones(group), _stored(classic)]
        self._replace(shard, group, classic)
        self._writes.write_quietly(shard, records)
        self._rebalance.resume(classic)
        self._rebalance.prepare_if_possible(classic, f"the last member of the consumer protocol is gone: {reason}")

    def is_all_classic(self, group: ConsumerGroup) -> bool:
        """After a classic member has replaced a static one: whether the group can be a classic one now."""
        size = len(group.members)
        return group.demand.classic_members == size and self._may_be_classic(group, size)

    def replaced(self, shard: GroupShard, change: Change) -> tuple[ClassicGroup, list[Entry]]:
        """A classic member has taken over the instance id of the last member of the consumer protocol. The caller
        writes the records. A group that was stable stays so, as with any static member that returns."""
        group = change.group
        is_stable = group.state is ConsumerGroupState.STABLE
        classic = to_classic_group(group, (), self._topics, self._clock_ms())
        records = [*change.records, *group_tombstones(group), _stored(classic)]
        self._replace(shard, group, classic)
        self._rebalance.resume(classic)
        if not is_stable:
            self._rebalance.prepare_if_possible(classic, "its last members changed to the classic protocol meanwhile")
        return classic, records

    def replace_empty(self, shard: GroupShard, group: ConsumerGroup, classic: ClassicGroup) -> None:
        """Replace a consumer group without members by a classic one, which has accepted its first member."""
        self._replace(shard, group, classic)
        self._writes.write_quietly(shard, group_tombstones(group))

    def _may_be_classic(self, group: ConsumerGroup, size: int) -> bool:
        return self._limits.may_downgrade and size <= self._classic_max_size() and group.demand.has_common_protocol

    def _replace(self, shard: GroupShard, group: ConsumerGroup, classic: ClassicGroup) -> None:
        self._unload(group)
        shard.groups[group.group_id] = classic


def _stored(classic: ClassicGroup) -> Entry:
    return group_record(classic, {each.member_id: each.assignment for each in classic.members.values()})


def no_consumer_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} is not of the consumer protocol")
