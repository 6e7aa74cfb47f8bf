"""Serves the requests of streams groups (KIP-1071): heartbeat, describe, and the ends of a group's life.

It finds or makes the group, lets the rules in `streams` decide, writes what changed and then answers. The answer may
name internal topics that must be made first: `apis.k88_streams_group_heartbeat` makes them, with the rights of the
client, and asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic.states import EMPTY
from ixion.broker.coordinators.group.consumer.rules import JOIN, LEAVE_FOR_A_WHILE
from ixion.broker.coordinators.group.consumer_writes import ConsumerWrites
from ixion.broker.coordinators.group.journal import Journal
from ixion.broker.coordinators.group.records import Entry, group_tombstone
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.streams.change import StreamsChange
from ixion.broker.coordinators.group.streams.configure import Configured, InternalTopic
from ixion.broker.coordinators.group.streams.describe import described, not_described
from ixion.broker.coordinators.group.streams.endpoints import endpoints_of
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.heartbeats import StreamsHeartbeats
from ixion.broker.coordinators.group.streams.member import StreamsMember
from ixion.broker.coordinators.group.streams.records import group_tombstones
from ixion.broker.coordinators.group.streams.rules import check_request, find_member, no_streams_group, owned_tasks
from ixion.broker.coordinators.group.streams.targets import NewTargets, StreamsTargets
from ixion.broker.coordinators.group.streams.tasks import Tasks
from ixion.broker.coordinators.group.streams.topology import Topology, topology_of
from ixion.broker.coordinators.group.streams.watch import StreamsWatch
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.config.streams_group import StreamsGroupSettings
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k13_leave_group import MemberIdentity
from ixion.language.protocol.messages.k88_streams_group_heartbeat import (
    EndpointToPartitions,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from ixion.language.protocol.messages.k89_streams_group_describe import DescribedGroup
from ixion.timer.lane import Lane
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

STREAMS_GROUPS: Final = 1  # the level of streams.version that allows them


class Beat(NamedTuple):
    """An answer to a heartbeat, and the internal topics that the group lacks."""

    answer: StreamsGroupHeartbeatResponse
    missing: tuple[InternalTopic, ...] = ()


Respond = Callable[[Beat], None]
Prepared = tuple[Tasks | None, Topology | None]


class StreamsProtocol:
    def __init__(
        self,
        shards: Shards,
        journal: Journal,
        rebalance: Rebalance,
        topics: TopicLookup,
        settings: StreamsGroupSettings,
        *,
        timer: Timer,
        clock_ms: Callable[[], int],
        version: Callable[[], int],
    ) -> None:
        """`version` is the present level of streams.version."""
        self._shards = shards
        self._rebalance = rebalance
        self._settings = settings
        self._clock_ms = clock_ms
        self._version = version
        self._bounds = rebalance.bounds
        self._writes = ConsumerWrites(shards, journal, self._bounds)
        self._lane = Lane(partial(timer.call_later, 0), fair=True)
        self._watch = StreamsWatch(timer, settings.session_timeout_ms, remove=self._expire, begin=self._begin)
        targets = StreamsTargets(
            topics,
            self._lane,
            standbys=settings.standby_replicas,
            draft=self._writes.draft,
            on_configured=self._on_configured,
            on_targets=self._on_targets,
        )
        self._heartbeats = StreamsHeartbeats(topics, targets, self._watch, settings, self._bounds)

    @property
    def is_enabled(self) -> bool:
        return self._version() >= STREAMS_GROUPS

    # Requests.

    def heartbeat(self, request: StreamsGroupHeartbeatRequest, caller: Caller, respond: Respond) -> None:
        def prepared(made: Prepared | None, error: Exception | None) -> None:
            try:
                if made is None:
                    raise error or AssertionError("no result and no error")
                self._heartbeat(request, caller, made, respond)
            except KafkaError as refused:
                respond(Beat(refusal(refused.code, refused.message)))
            except Exception:
                logger.exception("a heartbeat of streams group %s failed", request.group_id)
                respond(Beat(refusal(ErrorCode.UNKNOWN_SERVER_ERROR)))

        self._lane.begin(self._prepare(request), prepared)

    def describe(self, group_id: str) -> Steps[DescribedGroup]:
        found = self.find(group_id)
        if isinstance(found, ErrorCode):
            text = None
            if found is ErrorCode.GROUP_ID_NOT_FOUND:
                shard = self._shards.find(group_id)
                is_other = not isinstance(shard, ErrorCode) and group_id in shard.groups
                text = no_streams_group(group_id).message if is_other else f"Group {group_id} not found."
            return not_described(group_id, found, text)
        return (yield from described(found))

    def endpoints(self, group_id: str) -> Steps[tuple[EndpointToPartitions, ...]]:
        found = self.find(group_id)
        return () if isinstance(found, ErrorCode) else (yield from endpoints_of(found))

    def find(self, group_id: str) -> StreamsGroup | ErrorCode:
        if not self.is_enabled:
            return ErrorCode.UNSUPPORTED_VERSION
        shard = self._shards.find(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else ErrorCode.GROUP_ID_NOT_FOUND

    def classic_leave(self, group: StreamsGroup, leaving: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """LeaveGroup, with which administrators remove members."""
        codes: list[ErrorCode] = []
        for each in leaving:
            try:
                member_id = each.member_id or group.static_members.get(each.group_instance_id or "", "")
                self._expire(group, find_member(group, member_id, each.group_instance_id))
                codes.append(ErrorCode.NONE)
            except KafkaError as error:
                codes.append(error.code)
        return codes

    # The life of a group.

    def replace_empty(self, shard: GroupShard, group: StreamsGroup, classic: ClassicGroup) -> None:
        """Replace a streams group without members by a classic one, which has accepted its first member."""
        self.unload(group)
        shard.groups[group.group_id] = classic
        self._writes.write_quietly(shard, group_tombstones(group))

    def resume(self, group: StreamsGroup) -> None:
        self._writes.note(group)
        for member in group.members.values():
            self._watch.alive(group, member)

    def unload(self, group: StreamsGroup) -> None:
        group.dead = True
        self._bounds.hold(group.group_id, 0)
        self._watch.end_delay(group)
        for member in group.members.values():
            self._watch.forget(group, member)

    def stop(self) -> None:
        self._watch.stop()

    def _prepare(self, request: StreamsGroupHeartbeatRequest) -> Steps[Prepared]:
        """What needs no group, and may take long."""
        if not self.is_enabled:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "streams groups need streams.version 1")
        check_request(request)
        owned = yield from owned_tasks(request)
        return owned, None if request.topology is None else (yield from topology_of(request.topology))

    def _heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller, made: Prepared, respond: Respond
    ) -> None:
        shard = self._shards.find_for(request.group_id)
        if isinstance(shard, ErrorCode):
            raise KafkaError(shard)
        before = shard.groups.get(request.group_id)
        group = before
        if request.member_epoch == JOIN and (
            group is None or (isinstance(group, ClassicGroup) and group.state is EMPTY and not group.is_awaited)
        ):
            group = StreamsGroup(request.group_id)
        if not isinstance(group, StreamsGroup):
            raise no_streams_group(request.group_id)
        change = StreamsChange(group, self._clock_ms())
        if request.member_epoch < JOIN:
            answer = self._leave(change, request)
        else:
            answer = self._heartbeats.beat(change, request, caller, *made)
        if isinstance(before, ClassicGroup):
            self._replace(before, change.records)
        shard.groups[request.group_id] = group
        self._writes.note(group)
        configured = group.configured
        missing = () if configured is None or request.member_epoch < JOIN else configured.to_create
        self._writes.write(shard, change.close(), Beat(answer, missing), respond, lambda code: Beat(refusal(code)))

    def _leave(self, change: StreamsChange, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
        group = change.group
        member = find_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_FOR_A_WHILE:
            change.move(member, member.current.left(LEAVE_FOR_A_WHILE, JOIN))
            self._watch.asked_anew(group, member)
        else:
            self._remove(change, member)
        return _answer(ErrorCode.NONE, member_id=request.member_id, member_epoch=request.member_epoch)

    def _remove(self, change: StreamsChange, member: StreamsMember) -> None:
        change.remove(member)
        change.bump()
        self._watch.forget(change.group, member)
        if not change.group.members:
            self._watch.end_delay(change.group)

    def _expire(self, group: StreamsGroup, member: StreamsMember) -> None:
        change = StreamsChange(group, self._clock_ms())
        self._remove(change, member)
        self._save(change)

    def _replace(self, before: ClassicGroup, records: list[Entry]) -> None:
        """The streams group takes the place of an empty classic group, and keeps its offsets."""
        if before.protocol_type is not None:
            records.insert(0, group_tombstone(before.group_id))
        self._rebalance.unload(before, ErrorCode.REBALANCE_IN_PROGRESS)

    def _begin(self, group: StreamsGroup) -> None:
        """The first members of a group have waited for others long enough."""
        if self._is_here(group):
            change = StreamsChange(group, self._clock_ms())
            self._heartbeats.assign_if_due(change, at_once=True)
            self._save(change)

    def _on_configured(self, group: StreamsGroup, found: Configured) -> None:
        """Looking at the topics took long. If they have changed meanwhile, the next heartbeat looks again."""
        if self._is_here(group) and found.topology is group.topology and found.metadata_hash == group.metadata_hash:
            group.configured = found
            change = StreamsChange(group, self._clock_ms())
            self._heartbeats.note_configured(change)
            self._heartbeats.assign_if_due(change)
            self._save(change)

    def _on_targets(self, new: NewTargets) -> None:
        group = new.group
        shard = self._shards.find(group.group_id)
        if not isinstance(shard, ErrorCode) and shard.groups.get(group.group_id) is group:
            new.apply(self._clock_ms())
            self._writes.note(group)
            self._writes.write_draft(shard, new.draft)

    def _is_here(self, group: StreamsGroup) -> bool:
        shard = self._shards.find(group.group_id)
        return not isinstance(shard, ErrorCode) and shard.groups.get(group.group_id) is group

    def _save(self, change: StreamsChange) -> None:
        """Write a change that no request waits for."""
        shard = self._shards.find(change.group.group_id)
        self._writes.note(change.group)
        if not isinstance(shard, ErrorCode):
            self._writes.write_quietly(shard, change.close())


def refusal(code: ErrorCode, message: str | None = None) -> StreamsGroupHeartbeatResponse:
    return _answer(code, message=message or code.explanation)


def _answer(
    code: ErrorCode, *, message: str | None = None, member_id: str = "", member_epoch: int = 0
) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        error_code=code,
        error_message=message,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=0,
        acceptable_recovery_lag=0,
        task_offset_interval_ms=0,
        status=(),
        endpoint_information_epoch=0,
    )
