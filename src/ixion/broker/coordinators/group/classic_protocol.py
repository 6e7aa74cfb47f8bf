"""Serves the requests of the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

It finds or makes the group and hands the request to the rules in `classic`. If the group is a consumer group, whose
members may speak both protocols, it hands the request to `consumer_protocol`. Share groups and streams groups have no
classic members; LeaveGroup alone removes members of streams groups, too.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Sequence

from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.classic.answers import join_error, sync_error
from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.join import Joining
from ixion.broker.coordinators.group.classic.member import RespondJoin, RespondSync
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic.states import DEAD
from ixion.broker.coordinators.group.classic.sync import heartbeat, leave, sync
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer_protocol import ConsumerProtocol
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams_protocol import StreamsProtocol
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest


class ClassicProtocol:
    def __init__(
        self,
        shards: Shards,
        rebalance: Rebalance,
        joining: Joining,
        consumer: ConsumerProtocol,
        streams: StreamsProtocol,
        *,
        clock_ms: Callable[[], int],
        call_soon: Callable[..., object],
    ) -> None:
        self._shards = shards
        self._rebalance = rebalance
        self._joining = joining
        self._consumer = consumer
        self._streams = streams
        self._clock_ms = clock_ms
        self._call_soon = call_soon

    def join(self, request: JoinGroupRequest, caller: Caller, respond: RespondJoin) -> None:
        # An answer may bring the next request of the same connection at once. A rebalance answers many members while
        # the group is changing, so its answers are sent in the next turn, when the group has finished changing.
        def later(answer: object) -> None:
            self._call_soon(respond, answer)

        shard = self._shards.find_for(request.group_id)
        if not request.group_id:
            respond(join_error(ErrorCode.INVALID_GROUP_ID, request.member_id))
        elif isinstance(shard, ErrorCode):
            respond(join_error(shard, request.member_id))
        elif not self._joining.check_timeout(request):
            respond(join_error(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
        else:
            group = shard.groups.get(request.group_id)
            if group is None:
                if request.member_id:
                    respond(join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                    return
                if not request.protocol_type or not request.protocols:
                    respond(join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
                    return
                group = ClassicGroup(request.group_id, self._clock_ms())
            if isinstance(group, ShareGroup) or (isinstance(group, StreamsGroup) and group.members):
                respond(join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
                return
            if isinstance(group, StreamsGroup):
                if request.member_id:
                    respond(join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                    return
                idle, group = group, ClassicGroup(request.group_id, self._clock_ms())
                self._joining.join(group, request, caller, later)
                if group.is_awaited:
                    self._streams.replace_empty(shard, idle, group)
                return
            if isinstance(group, ConsumerGroup):
                if group.members:
                    self._consumer.classic_join(shard, group, request, caller, respond)
                    return
                if request.member_id:
                    respond(join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                    return
                empty, group = group, ClassicGroup(request.group_id, self._clock_ms())
                self._joining.join(group, request, caller, later)
                if group.is_awaited:
                    self._consumer.migrations.replace_empty(shard, empty, group)
                return
            self._joining.join(group, request, caller, later)
            if group.is_awaited:
                shard.groups[request.group_id] = group  # keep a new group, unless it refused its first member

    def sync(self, request: SyncGroupRequest, respond: RespondSync) -> None:
        def later(answer: object) -> None:
            self._call_soon(respond, answer)

        found = self._find(request.group_id)
        if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Old clients do not expect COORDINATOR_LOAD_IN_PROGRESS here. This one makes them join again.
            respond(sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        elif isinstance(found, ErrorCode):
            respond(sync_error(found))
        elif isinstance(found, ConsumerGroup):
            self._consumer.classic_sync(found, request, respond)
        else:
            sync(self._rebalance, found, request, later)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        found = self._find(request.group_id)
        if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE  # no session timeout runs before the group is loaded
        if isinstance(found, ErrorCode):
            return found
        if isinstance(found, ConsumerGroup):
            return self._consumer.classic_heartbeat(found, request)
        return heartbeat(self._rebalance, found, request)

    def leave(self, group_id: str, leaving: Sequence[MemberIdentity]) -> ErrorCode | list[ErrorCode]:
        """One code for the whole request, or one for each member."""
        shard = self._shards.find(group_id)
        streams = None if isinstance(shard, ErrorCode) else shard.groups.get(group_id)
        if isinstance(streams, StreamsGroup):
            return self._streams.classic_leave(streams, leaving)
        found = self._find(group_id)
        if found is ErrorCode.UNKNOWN_MEMBER_ID:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving)
        if isinstance(found, ErrorCode):
            return found
        if isinstance(found, ConsumerGroup):
            return self._consumer.classic_leave(found, leaving)
        if found.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return [leave(self._rebalance, found, each) for each in leaving]

    def _find(self, group_id: str) -> ClassicGroup | ConsumerGroup | ErrorCode:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        shard = self._shards.find(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None or isinstance(group, ShareGroup | StreamsGroup) else group
