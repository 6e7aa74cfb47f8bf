"""Serves the requests of the consumer protocol (KIP-848), and those of classic members in a consumer group.

It finds or makes the group, lets the rules in `consumer` decide, writes what changed and then answers. `migrations`
turns a group of one protocol into one of the other. `classic_protocol` serves the requests of classic groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.bounds import check_topics
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.classic.answers import join_error, sync_error
from ixion.broker.coordinators.group.classic.group import CONSUMER, ClassicGroup
from ixion.broker.coordinators.group.classic.member import RespondJoin, RespondSync
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.classic_side import ClassicMembers, MemberIdRequired, joined_response
from ixion.broker.coordinators.group.consumer.describe import described, not_described
from ixion.broker.coordinators.group.consumer.engine import Engine
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.heartbeats import ConsumerHeartbeats
from ixion.broker.coordinators.group.consumer.limits import GroupConfig, GroupLimits
from ixion.broker.coordinators.group.consumer.matches import Matches
from ixion.broker.coordinators.group.consumer.member import ConsumerMember
from ixion.broker.coordinators.group.consumer.rules import JOIN, check_request
from ixion.broker.coordinators.group.consumer.targets import NewTargets, Targets
from ixion.broker.coordinators.group.consumer.watch import MemberTimeouts
from ixion.broker.coordinators.group.consumer_writes import ConsumerWrites
from ixion.broker.coordinators.group.journal import Journal
from ixion.broker.coordinators.group.migrations import Migrations, no_consumer_group
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.config import group_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ixion.language.protocol.messages.k69_consumer_group_describe import DescribedGroup
from ixion.timer.lane import Lane
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

CONSUMER_PROTOCOL: Final = 1  # the level of group.version that allows it


class ConsumerProtocol:
    def __init__(
        self,
        shards: Shards,
        journal: Journal,
        rebalance: Rebalance,
        topics: TopicLookup,
        config: DynamicConfig,
        *,
        timer: Timer,
        clock_ms: Callable[[], int],
        group_config: GroupConfig,
        version: Callable[[], int],
        new_id: Callable[[str], str],
    ) -> None:
        self._shards = shards
        self._topics = topics
        self._config = config
        self._clock_ms = clock_ms
        self._version = version
        self._limits = GroupLimits(config, group_config)
        self._watch = MemberTimeouts(timer, self._limits, self.remove)
        self._bounds = bounds = rebalance.bounds
        self._writes = writes = ConsumerWrites(shards, journal, bounds)
        self.migrations = Migrations(
            rebalance,
            topics,
            self._limits,
            writes,
            clock_ms=clock_ms,
            classic_max_size=lambda: config.current[settings.GROUP_MAX_SIZE],
            resume=self.resume,
            unload=self.unload,
        )
        lane = Lane(partial(timer.call_later, 0), fair=True)
        targets = Targets(topics, self._limits, lane, draft=writes.draft, on_ready=self._on_targets)
        self._engine = Engine(topics, self._limits, Matches(topics, lane, self._on_matched), targets)
        self._heartbeats = ConsumerHeartbeats(
            self._engine,
            self._watch,
            self._limits,
            bounds,
            clock_ms=clock_ms,
            save=writes.save,
            remove=self.remove,
            new_id=lambda: new_id("member"),
        )
        self._classic = ClassicMembers(
            self._engine,
            self._watch,
            self._limits,
            bounds,
            topics,
            remove=self.remove,
            new_id=lambda: new_id("member"),
        )

    # Members of the consumer protocol.

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        respond: Callable[[ConsumerGroupHeartbeatResponse], None],
    ) -> None:
        try:
            self._heartbeat(request, caller, respond)
        except KafkaError as error:
            respond(_refusal(error.code, error.message))

    def describe(self, group_id: str) -> Steps[DescribedGroup]:
        if not self._is_enabled:
            return not_described(group_id, ErrorCode.UNSUPPORTED_VERSION)
        shard = self._shards.find(group_id)
        if isinstance(shard, ErrorCode):
            return not_described(group_id, shard)
        group = shard.groups.get(group_id)
        if group is None:
            return not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            return not_described(
                group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} is not of the consumer protocol"
            )
        return (yield from described(group, self._topics, self._limits.assignors))

    # Members of the classic protocol in a consumer group.

    def classic_join(
        self, shard: GroupShard, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, respond: RespondJoin
    ) -> None:
        change = Change(group, self._clock_ms())
        instance_id = request.group_instance_id
        static = None if instance_id is None else group.static_member(instance_id)
        may_be_last = static is not None and not static.is_classic
        try:
            answer = self._classic.join(change, request, caller)
        except MemberIdRequired as required:
            respond(join_error(required.code, required.member_id))
        except KafkaError as error:
            respond(join_error(error.code))  # without the member id, as in Kafka
        else:
            records = change.records
            if may_be_last and self.migrations.is_all_classic(group):
                classic, records = self.migrations.replaced(shard, change)
                answer = joined_response(answer.member_id, classic.generation, classic.protocol_name)
            else:
                self._writes.note(group)
            self._writes.write(shard, records, answer, respond, lambda code: join_error(code, request.member_id))

    def classic_sync(self, group: ConsumerGroup, request: SyncGroupRequest, respond: RespondSync) -> None:
        try:
            respond(self._classic.sync(group, request))
        except KafkaError as error:
            respond(sync_error(error.code))

    def classic_heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        try:
            return self._classic.heartbeat(group, request, self._clock_ms())
        except KafkaError as error:
            return error.code

    def classic_leave(self, group: ConsumerGroup, leaving: Sequence[MemberIdentity]) -> list[ErrorCode]:
        return self._classic.leave(group, leaving)

    # The life of a group.

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerMember], reason: str) -> None:
        shard = self._shards.find(group.group_id)
        if isinstance(shard, ErrorCode) or shard.groups.get(group.group_id) is not group:
            return
        if self.migrations.is_downgrade(group, members):
            self.migrations.downgrade(shard, group, members, reason)
            return
        change = Change(group, self._clock_ms())
        self._engine.remove(change, members)
        for member in members:
            self._watch.forget(group, member)
        self._writes.note(group)
        self._writes.save(change)

    def resume(self, group: ConsumerGroup) -> None:
        self._writes.note(group)
        for member in group.members.values():
            self._watch.alive(group, member)

    def unload(self, group: ConsumerGroup) -> None:
        group.dead = True
        self._bounds.hold(group.group_id, 0)
        for member in group.members.values():
            self._watch.forget(group, member)

    def stop(self) -> None:
        self._watch.stop()

    def _heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        respond: Callable[[ConsumerGroupHeartbeatResponse], None],
    ) -> None:
        if not self._is_enabled:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "the consumer protocol needs group.version 1 and a place in group.coordinator.rebalance.protocols",
            )
        check_request(request, caller.version, self._limits.assignors)
        check_topics(len(request.subscribed_topic_names or ()))
        shard = self._shards.find_for(request.group_id)
        if isinstance(shard, ErrorCode):
            raise KafkaError(shard)
        if request.member_epoch < JOIN:
            group = shard.groups.get(request.group_id)
            if not isinstance(group, ConsumerGroup):
                raise no_consumer_group(request.group_id)
            respond(self._heartbeats.leave(group, request))
            return
        change, before = self.migrations.change(shard, request)
        answer = self._heartbeats.beat(change, request, caller)
        if isinstance(before, ClassicGroup):
            self.migrations.upgraded(change, before)
        shard.groups[request.group_id] = change.group
        self._writes.note(change.group)
        self._writes.write(shard, change.records, answer, respond, _refusal)

    @property
    def _is_enabled(self) -> bool:
        protocols = self._config.current[settings.GROUP_COORDINATOR_REBALANCE_PROTOCOLS]
        return CONSUMER in protocols and self._version() >= CONSUMER_PROTOCOL

    def _on_matched(self, group_id: str, regex: str) -> None:
        shard = self._shards.find(group_id)
        group = None if isinstance(shard, ErrorCode) else shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and regex in group.demand.regexes:
            change = Change(group, self._clock_ms())
            self._engine.pattern_matched(change, regex)
            self._writes.note(group)
            self._writes.save(change)

    def _on_targets(self, new: NewTargets) -> None:
        group = new.group
        shard = self._shards.find(group.group_id)
        if not isinstance(shard, ErrorCode) and shard.groups.get(group.group_id) is group:
            new.apply(self._clock_ms())
            self._writes.write_draft(shard, new.draft)


def _refusal(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code,
        error_message=message or code.explanation,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )
