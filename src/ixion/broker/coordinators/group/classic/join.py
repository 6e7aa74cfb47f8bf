"""JoinGroup: a member joins, or joins again.

What happens depends on the member:

| member                         | what                                                                             |
|--------------------------------|----------------------------------------------------------------------------------|
| new, dynamic, version 4 and up | gets an id (MEMBER_ID_REQUIRED) and joins again with it; otherwise a client that  |
|                                | times out and retries would leave a dead member behind each time                  |
| new, dynamic, older            | is added                                                                          |
| new, static, instance unknown  | is added                                                                          |
| new, static, instance known    | replaces the member of that instance, which is fenced; a stable group stays       |
|                                | stable if the elected protocol stays the same                                     |
| back with the id it was given  | is added                                                                          |
| a member                       | PreparingRebalance: joins. CompletingRebalance: gets the generation again if its  |
|                                | protocols are unchanged. Stable: the same for followers; the leader starts a      |
|                                | rebalance, because that is how it reports changed topics                          |

The answer waits until every member has joined the rebalance (see `delayed_join`).
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.classic.answers import join_error, joined, sync_error
from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import ClassicMember, Protocols, RespondJoin
from ixion.broker.coordinators.group.classic.reasons import member_reason
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic.rules import check_member, has_memory_for, has_room_for
from ixion.broker.coordinators.group.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from ixion.config import group_settings as settings
from ixion.config import log_settings
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupResponse

LONGEST_PREFIX: Final = 255
ID_REQUIRED_FROM = 4  # versions of JoinGroup
SKIPS_ASSIGNMENT_FROM = 9
REBALANCE_TIMEOUT_FROM = 1


class Join:
    """One JoinGroup request on its way through a group."""

    def __init__(
        self, request: JoinGroupRequest, caller: Caller, respond: RespondJoin, new_id: Callable[[str], str]
    ) -> None:
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = (
            request.rebalance_timeout_ms if caller.version >= REBALANCE_TIMEOUT_FROM else request.session_timeout_ms
        )
        self.protocol_type = request.protocol_type
        named = {protocol.name: protocol.metadata for protocol in reversed(request.protocols)}
        self.protocols: Protocols = tuple(reversed(named.items()))  # each name once; the first entry wins
        self.reason = request.reason
        self.caller = caller
        self.respond = respond
        self._new_id = new_id

    def draw_id(self) -> str:
        return self._new_id(self.caller.client_id if self.instance_id is None else self.instance_id)

    def fail(self, code: ErrorCode, member_id: str | None = None) -> None:
        self.respond(join_error(code, self.member_id if member_id is None else member_id))

    def member(self, member_id: str) -> ClassicMember:
        return ClassicMember(
            member_id=member_id,
            instance_id=self.instance_id,
            client_id=self.caller.client_id,
            client_host=self.caller.host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
        )


def random_id(prefix: str) -> str:
    """As in Kafka, but of a long client id or instance id only the beginning: the broker remembers each id."""
    from uuid import uuid4  # not at start: the import takes 4 ms

    return f"{prefix[:LONGEST_PREFIX]}-{uuid4()}"


class Joining:
    def __init__(self, rebalance: Rebalance, config: DynamicConfig, new_id: Callable[[str], str] = random_id) -> None:
        self._rebalance = rebalance
        self._config = config
        self._new_id = new_id

    def check_timeout(self, request: JoinGroupRequest) -> bool:
        config = self._config.current
        least, most = config[settings.GROUP_MIN_SESSION_TIMEOUT_MS], config[settings.GROUP_MAX_SESSION_TIMEOUT_MS]
        return least <= request.session_timeout_ms <= most

    def join(self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, respond: RespondJoin) -> None:
        join = Join(request, caller, respond, self._new_id)
        if not has_room_for(group, join.member_id, self._config.current[settings.GROUP_MAX_SIZE]):
            self._shed(group, join)
        elif not has_memory_for(
            group, join.member_id, join.protocols, self._config.current[log_settings.MESSAGE_MAX_BYTES]
        ):
            join.fail(ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif group.state is DEAD or not self._rebalance.bounds.has_room_for(group, join.member_id, join.protocols):
            join.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not group.supports(join.protocol_type, [name for name, _ in join.protocols]):
            join.fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not join.member_id:
            self._join_new(group, join)
        else:
            self._join_known(group, join)
        if group.state is not DEAD:
            self._rebalance.bounds.note(group)
        if group.state is PREPARING_REBALANCE:
            self._rebalance.check_join(group)

    def _shed(self, group: ClassicGroup, join: Join) -> None:
        member = group.members.get(join.member_id)
        join.fail(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        if member is not None:
            self._rebalance.remove(group, member, "the group is larger than group.max.size")
        elif join.member_id in group.pending_members:
            self._rebalance.remove_pending(group, join.member_id)

    def _join_new(self, group: ClassicGroup, join: Join) -> None:
        member_id = join.draw_id()
        if join.instance_id is not None:
            if join.instance_id in group.static_members:
                self._replace(group, join, join.instance_id, member_id)
            else:
                self._add(group, join, member_id)
        elif join.caller.version >= ID_REQUIRED_FROM:
            group.pending_members.add(member_id)
            self._rebalance.heartbeats.expect_return(group, member_id, join.session_timeout_ms)
            join.fail(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(group, join, member_id)

    def _join_known(self, group: ClassicGroup, join: Join) -> None:
        if join.member_id in group.pending_members and join.instance_id is None:
            self._add(group, join, join.member_id)
            return
        code = check_member(group, join.member_id, join.instance_id)
        if code is not ErrorCode.NONE:
            join.fail(code)
            return
        member = group.members[join.member_id]
        changed = member.protocols != join.protocols
        if group.state is PREPARING_REBALANCE:
            self._update(group, member, join)
        elif group.state is COMPLETING_REBALANCE:
            if changed:
                self._update(group, member, join)
            else:  # the first answer was lost
                join.respond(joined(group, join.member_id))
        elif group.state is STABLE:
            if changed or group.leader_id == join.member_id:
                self._update(group, member, join)
            else:
                join.respond(joined(group, join.member_id))
        else:
            assert group.state in (EMPTY, DEAD)
            join.fail(ErrorCode.UNKNOWN_MEMBER_ID)

    def _add(self, group: ClassicGroup, join: Join, member_id: str) -> None:
        member = join.member(member_id)
        member.is_new = True
        if group.state is PREPARING_REBALANCE and group.generation == 0:
            group.new_member_added = True
        was_pending = member_id in group.pending_members
        group.add(member, join.respond)
        if was_pending:
            self._rebalance.heartbeats.end(group, member_id)
        self._rebalance.heartbeats.renew(group, member)
        self._rebalance.prepare_if_possible(group, member_reason(member_id, "joins", join.reason))

    def _update(self, group: ClassicGroup, member: ClassicMember, join: Join) -> None:
        # If a join already waits, the client has given up that connection; otherwise it would not join again.
        if member.awaits_join:
            group.answer_join(member, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        group.update(member, join.protocols, join.rebalance_timeout_ms, join.session_timeout_ms, join.respond)
        self._rebalance.prepare_if_possible(group, member_reason(member.member_id, "joins again", join.reason))

    def _replace(self, group: ClassicGroup, join: Join, instance_id: str, new_id: str) -> None:
        """An instance joins without a member id, so it was restarted: fence its old member id."""
        old_id = group.static_members[instance_id]
        old_leader = group.leader_id
        member = group.members[old_id]
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._fence(group, member)
        group.rename_static(instance_id, new_id)
        self._rebalance.heartbeats.end(group, old_id)
        group.update(member, join.protocols, join.rebalance_timeout_ms, join.session_timeout_ms, join.respond)
        self._rebalance.heartbeats.renew(group, member)
        if group.state is COMPLETING_REBALANCE:
            # The leader may be assigning to the old id at this moment.
            self._rebalance.prepare(group, member_reason(new_id, f"joins as instance {instance_id}", join.reason))
        elif group.state is STABLE:
            if group.elect_protocol() != group.protocol_name:
                self._rebalance.prepare(group, f"instance {instance_id} is back with other protocols")
                return

            def stored(code: ErrorCode) -> None:
                # Meanwhile this member may have been fenced, or a rebalance may answer it and store the group anyway.
                # Undoing the replacement would then fence a member that has joined.
                if group.state is not STABLE or member.respond_join is not join.respond:
                    return
                if code is ErrorCode.NONE:
                    group.answer_join(member, _as_before(group, member, old_leader, join.caller.version))
                else:
                    group.answer_join(member, join_error(code))
                    group.update(member, *before, None)
                    group.rename_static(instance_id, old_id)
                self._rebalance.heartbeats.renew(group, member)  # no session timeout ran while it waited

            self._rebalance.store(group, {each.member_id: each.assignment for each in group.members.values()}, stored)

    def _fence(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.answer_join(member, join_error(ErrorCode.FENCED_INSTANCE_ID, member.member_id))
        group.answer_sync(member, sync_error(ErrorCode.FENCED_INSTANCE_ID))


def _as_before(group: ClassicGroup, member: ClassicMember, old_leader: str | None, version: int) -> JoinGroupResponse:
    """The answer to a static member that came back to a stable group: the present generation, for which it then syncs.

    A returning leader must not assign again, because the group would ignore it. From version 9 on the answer can say
    so; older versions name another leader.
    """
    if version >= SKIPS_ASSIGNMENT_FROM:
        return joined(group, member.member_id, skip_assignment=group.leader_id == member.member_id)
    return joined(group, member.member_id, leader=old_leader)
