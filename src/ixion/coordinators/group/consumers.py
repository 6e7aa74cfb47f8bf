"""The consumer protocol at the coordinator's door: finds or makes the group, writes what changed, then answers.

Also the place where a group goes from one protocol to the other (see `consumer.migration`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from ixion.config import group_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.coordinators.group.bounds import check_topics
from ixion.coordinators.group.caller import Caller
from ixion.coordinators.group.classic.answers import join_error, sync_error
from ixion.coordinators.group.classic.group import CONSUMER, ClassicGroup
from ixion.coordinators.group.classic.member import RespondJoin, RespondSync
from ixion.coordinators.group.classic.rebalance import Rebalance
from ixion.coordinators.group.classic.states import EMPTY
from ixion.coordinators.group.consumer.change import Change
from ixion.coordinators.group.consumer.classic_side import ClassicMembers, MemberIdRequired
from ixion.coordinators.group.consumer.describe import described, not_described
from ixion.coordinators.group.consumer.engine import Engine
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.consumer.heartbeats import ConsumerHeartbeats
from ixion.coordinators.group.consumer.limits import GroupConfig, Limits
from ixion.coordinators.group.consumer.matches import Matches
from ixion.coordinators.group.consumer.member import ConsumerMember
from ixion.coordinators.group.consumer.migration import to_classic_group, to_consumer_group
from ixion.coordinators.group.consumer.records import group_tombstones
from ixion.coordinators.group.consumer.rules import JOIN, check_request
from ixion.coordinators.group.consumer.targets import NewTargets, Targets
from ixion.coordinators.group.consumer.watch import Watch
from ixion.coordinators.group.journal import Draft, Journal
from ixion.coordinators.group.records import Entry, group_record, group_tombstone
from ixion.coordinators.group.shard import Shard
from ixion.coordinators.group.shards import Shards
from ixion.coordinators.group.topics import TopicLookup
from ixion.coordinators.log_codes import COORDINATOR_CODES
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k11_join_group import JoinGroupRequest
from ixion.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.protocol.messages.k13_leave_group import MemberIdentity
from ixion.protocol.messages.k14_sync_group import SyncGroupRequest
from ixion.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ixion.protocol.messages.k69_consumer_group_describe import DescribedGroup
from ixion.timer.lane import Lane
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

CONSUMER_PROTOCOL: Final = 1  # the level of group.version that allows it

A = TypeVar("A")


class Consumers:
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
        self._journal = journal
        self._rebalance = rebalance
        self._topics = topics
        self._config = config
        self._clock_ms = clock_ms
        self._version = version
        self._limits = Limits(config, group_config)
        self._watch = Watch(timer, self._limits, self.remove)
        lane = Lane(partial(timer.call_later, 0), fair=True)
        targets = Targets(topics, self._limits, lane, draft=self._draft, on_ready=self._on_targets)
        self._engine = Engine(topics, self._limits, Matches(topics, lane, self._on_matched), targets)
        self._bounds = bounds = rebalance.bounds
        self._heartbeats = ConsumerHeartbeats(
            self._engine,
            self._watch,
            self._limits,
            bounds,
            clock_ms=clock_ms,
            save=self._save,
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
        self, shard: Shard, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, respond: RespondJoin
    ) -> None:
        change = Change(group, self._clock_ms())
        try:
            answer = self._classic.join(change, request, caller)
        except MemberIdRequired as required:
            respond(join_error(required.code, required.member_id))
        except KafkaError as error:
            respond(join_error(error.code, request.member_id))
        else:
            self._note(group)
            self._write(shard, change.records, answer, respond, lambda code: join_error(code, request.member_id))

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

    def remove(self, group: ConsumerGroup, member: ConsumerMember, reason: str) -> None:
        shard = self._shards.find(group.group_id)
        if isinstance(shard, ErrorCode) or shard.groups.get(group.group_id) is not group:
            return
        self._watch.forget(group, member)
        if self._is_to_go_down(group, member):
            self._go_down(shard, group, member, reason)
            return
        change = Change(group, self._clock_ms())
        self._engine.remove(change, [member])
        self._note(group)
        self._save(change)

    def replace_empty(self, shard: Shard, group: ConsumerGroup) -> ClassicGroup:
        """Classic members join a consumer group that nobody is in: it becomes a classic one."""
        classic = ClassicGroup(group.group_id, self._clock_ms())
        self._drop(shard, group)
        shard.groups[group.group_id] = classic
        self._write_quietly(shard, group_tombstones(group))
        return classic

    def resume(self, group: ConsumerGroup) -> None:
        self._note(group)
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
        shard = self._shards.find(request.group_id)
        if isinstance(shard, ErrorCode):
            raise KafkaError(shard)
        if request.member_epoch < JOIN:
            group = shard.groups.get(request.group_id)
            if not isinstance(group, ConsumerGroup):
                raise _not_found(request.group_id)
            respond(self._heartbeats.leave(group, request))
            return
        change, before = self._change(shard, request)
        answer = self._heartbeats.beat(change, request, caller)
        if isinstance(before, ClassicGroup):
            if before.protocol_type is not None:
                change.records.insert(0, group_tombstone(before.group_id))
            self._rebalance.unload(before, ErrorCode.REBALANCE_IN_PROGRESS)
            self.resume(change.group)
        shard.groups[request.group_id] = change.group
        self._note(change.group)
        self._write(shard, change.records, answer, respond, _refusal)

    @property
    def _is_enabled(self) -> bool:
        protocols = self._config.current[settings.GROUP_COORDINATOR_REBALANCE_PROTOCOLS]
        return CONSUMER in protocols and self._version() >= CONSUMER_PROTOCOL

    def _change(
        self, shard: Shard, request: ConsumerGroupHeartbeatRequest
    ) -> tuple[Change, ClassicGroup | ConsumerGroup | None]:
        """What the heartbeat is to change, and what has been there so far. Nothing is replaced yet."""
        now_ms = self._clock_ms()
        group = shard.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return Change(group, now_ms), group
        if request.member_epoch != JOIN:
            raise _not_found(request.group_id)
        if group is None or group.state is EMPTY:
            return Change(ConsumerGroup(request.group_id), now_ms), group
        if (
            not self._limits.may_upgrade
            or group.protocol_type != CONSUMER
            or len(group.members) >= self._limits.max_size
        ):
            raise _not_found(request.group_id)
        try:
            return to_consumer_group(group, self._topics, now_ms), group
        except KafkaError as error:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"The group cannot be upgraded: {error.message}") from None

    def _on_matched(self, group_id: str, regex: str) -> None:
        shard = self._shards.find(group_id)
        group = None if isinstance(shard, ErrorCode) else shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and regex in group.demand.regexes:
            change = Change(group, self._clock_ms())
            self._engine.pattern_matched(change, regex)
            self._note(group)
            self._save(change)

    def _draft(self, group_id: str) -> Draft:
        return self._journal.draft(self._shards.partition_for(group_id))

    def _on_targets(self, new: NewTargets) -> None:
        group = new.group
        shard = self._shards.find(group.group_id)
        if not isinstance(shard, ErrorCode) and shard.groups.get(group.group_id) is group:
            new.apply(self._clock_ms())
            new.draft.write(partial(self._written_quietly, shard))

    def _is_to_go_down(self, group: ConsumerGroup, leaving: ConsumerMember) -> bool:
        others = len(group.members) - 1
        return (
            others > 0
            and not leaving.is_classic
            and group.demand.classic_members == others
            and self._limits.may_downgrade
            and others <= self._config.current[settings.GROUP_MAX_SIZE]
        )

    def _go_down(self, shard: Shard, group: ConsumerGroup, leaving: ConsumerMember, reason: str) -> None:
        records = group_tombstones(group)
        group.remove(leaving.member_id)
        classic = to_classic_group(group, self._topics, self._clock_ms())
        self._drop(shard, group)
        shard.groups[group.group_id] = classic
        assignments = {each.member_id: each.assignment for each in classic.members.values()}
        self._write_quietly(shard, [*records, group_record(classic, assignments)])
        self._rebalance.resume(classic)
        self._rebalance.prepare_if_possible(classic, f"the last member of the consumer protocol is gone: {reason}")

    def _drop(self, shard: Shard, group: ConsumerGroup) -> None:
        self.unload(group)
        if shard.groups.get(group.group_id) is group:
            del shard.groups[group.group_id]

    def _note(self, group: ConsumerGroup) -> None:
        self._bounds.hold(group.group_id, group.held_bytes)

    def _save(self, change: Change) -> None:
        shard = self._shards.find(change.group.group_id)
        if not isinstance(shard, ErrorCode):
            self._write_quietly(shard, change.records)

    def _write(
        self,
        shard: Shard,
        records: Sequence[Entry],
        answer: A,
        respond: Callable[[A], None],
        refuse: Callable[[ErrorCode], A],
    ) -> None:
        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                respond(answer)
            else:
                self._shards.reload(shard)
                respond(refuse(COORDINATOR_CODES.get(code, code)))

        self._journal.write_change(shard.partition, records, written)

    def _write_quietly(self, shard: Shard, records: Sequence[Entry]) -> None:
        self._journal.write_change(shard.partition, records, partial(self._written_quietly, shard))

    def _written_quietly(self, shard: Shard, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            logger.warning("a change of a group could not be stored (%s); its state is read again", code.name)
            self._shards.reload(shard)


def _not_found(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} is not of the consumer protocol")


def _refusal(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=message or code.explanation,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )
