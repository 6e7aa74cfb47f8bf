"""A rebalance from its beginning to the assignment, and how members are removed.

    prepare      members that wait for an assignment must rejoin; wait until all have joined (DelayedJoin)
    on_joined    members that did not join are removed (static ones stay: they may be restarting); all others get the
                 new generation, and must send SyncGroup in time (DelayedSync)
    assign       the leader's assignment is written to the log, then sent to the waiting members; the group is stable

Everything runs on one event loop. A method may answer requests, which does not re-enter the group. The members of a
group of more than `AT_ONCE` are answered in turns of the loop.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.bounds import Bounds
from ixion.broker.coordinators.group.classic.answers import join_error, joined, joined_leader, sync_error, synced
from ixion.broker.coordinators.group.classic.delayed_join import DelayedJoin, InitialDelayedJoin
from ixion.broker.coordinators.group.classic.delayed_sync import DelayedSync
from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.heartbeats import Heartbeats
from ixion.broker.coordinators.group.classic.member import ClassicMember
from ixion.broker.coordinators.group.classic.reasons import member_reason
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
from ixion.purgatory import DelayedOperationPurgatory
from ixion.timer import Timer
from ixion.timer.lane import Lane
from ixion.timer.turns import Steps, finish

logger = logging.getLogger(__name__)

AT_ONCE: Final = 500  # members whose requests are answered in one turn of the loop, some 3 ms

# Writes the group, with these assignments by member id, to the log, and calls back with the code.
StoreGroup = Callable[[ClassicGroup, Mapping[str, bytes], Callable[[ErrorCode], None]], None]


class Rebalance:
    def __init__(self, *, config: DynamicConfig, timer: Timer, clock_ms: Callable[[], int], store: StoreGroup) -> None:
        self._config = config
        self._clock_ms = clock_ms
        self.store = store
        # One shard each: more would only help several threads.
        self.heartbeat_purgatory = DelayedOperationPurgatory("Heartbeat", timer=timer, shards=1)
        self.rebalance_purgatory = DelayedOperationPurgatory("Rebalance", timer=timer, shards=1)
        self.heartbeats = Heartbeats(self.heartbeat_purgatory, self._on_heartbeat_failed)
        self._lane = Lane(partial(timer.call_later, 0), fair=True)  # for groups of very many members
        self.bounds = Bounds(lambda: config.current[log_settings.MESSAGE_MAX_BYTES])

    def prepare_if_possible(self, group: ClassicGroup, reason: str) -> None:
        if group.can_rebalance:
            self.prepare(group, reason)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance."""
        if group.state is COMPLETING_REBALANCE:
            self._refuse_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        self.check_sync(group)
        was_empty = group.state is EMPTY
        group.transition(PREPARING_REBALANCE, self._clock_ms())
        logger.info("group %s prepares a rebalance after generation %d: %s", group.group_id, group.generation, reason)
        if was_empty:
            group.new_member_added = False
            span_ms = self._config.current[settings.GROUP_INITIAL_REBALANCE_DELAY_MS]
            whole_ms = max(span_ms, group.rebalance_timeout_ms)
            self._wait_initially(InitialDelayedJoin(group, span_ms, whole_ms, self._on_joined, self._wait_initially))
        else:
            self._wait_for_members(group)

    def check_join(self, group: ClassicGroup) -> None:
        """After a member joined or left: complete the rebalance if all have joined."""
        self.rebalance_purgatory.check_and_complete(("join", group.group_id))

    def check_sync(self, group: ClassicGroup) -> None:
        self.rebalance_purgatory.check_and_complete(("sync", group.group_id))

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Store the leader's assignment, then send it. A member that it leaves out gets an empty one."""
        generation = group.generation
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}

        def stored(code: ErrorCode) -> None:
            # If another rebalance has begun meanwhile, these assignments are obsolete.
            if group.state is not COMPLETING_REBALANCE or group.generation != generation:
                return
            if code is not ErrorCode.NONE:
                self._refuse_assignment(group, code)
                self.prepare_if_possible(group, f"its assignment could not be stored: {code.name}")
                return
            group.transition(STABLE, self._clock_ms())
            members = list(group.members.values())
            for member in members:
                member.assignment = complete.get(member.member_id, b"")
            self._in_turns(len(members), self._answer_syncs(group, members))

        self.store(group, complete, stored)

    def _answer_syncs(self, group: ClassicGroup, members: list[ClassicMember]) -> Steps[None]:
        """Send the assignments of this generation, even if another rebalance begins before all are sent."""
        protocol_type, protocol_name = group.protocol_type, group.protocol_name
        for member in members:
            if group.answer_sync(member, synced(protocol_type, protocol_name, member)):
                # No session timeout ran while the member waited for this answer: start one.
                self.heartbeats.renew(group, member)
            yield

    def _in_turns(self, members: int, steps: Steps[None]) -> None:
        """Answer at once, or in turns if there are more than `AT_ONCE` members."""
        if members <= AT_ONCE:
            finish(steps)
        else:
            self._lane.run(steps, log_error, at_once=False)

    def remove(self, group: ClassicGroup, member: ClassicMember, reason: str) -> None:
        """Remove a member that left or failed, and rebalance."""
        self._drop(group, member)
        if group.state in (STABLE, COMPLETING_REBALANCE):
            self.prepare_if_possible(group, reason)
        elif group.state is PREPARING_REBALANCE:
            self.check_join(group)

    def remove_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        self.bounds.note(group)
        self.heartbeats.end(group, member_id)
        if group.state is PREPARING_REBALANCE:
            self.check_join(group)

    def unload(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Drop the group, which is deleted or coordinated elsewhere; waiting requests get `code`."""
        group.transition(DEAD, self._clock_ms())
        self.bounds.forget(group)
        for member in list(group.members.values()):
            group.answer_join(member, join_error(code, member.member_id))
            group.answer_sync(member, sync_error(code))
            self.heartbeats.end(group, member.member_id)
        for member_id in group.pending_members:
            self.heartbeats.end(group, member_id)
        self.check_join(group)
        self.check_sync(group)

    def resume(self, group: ClassicGroup) -> None:
        """After the group was loaded from the log: expect a heartbeat of each member within its session timeout."""
        self.bounds.note(group)
        for member in group.members.values():
            self.heartbeats.renew(group, member)
        if len(group.members) > self._config.current[settings.GROUP_MAX_SIZE]:
            self.prepare_if_possible(group, "it was loaded with more members than group.max.size")

    def _wait_initially(self, operation: InitialDelayedJoin) -> None:
        self.rebalance_purgatory.try_complete_else_watch(operation, (("join", operation.group_id),))

    def _wait_for_members(self, group: ClassicGroup) -> None:
        operation = DelayedJoin(group, group.rebalance_timeout_ms, self._on_joined)
        self.rebalance_purgatory.try_complete_else_watch(operation, (("join", group.group_id),))

    def _on_joined(self, group: ClassicGroup) -> None:
        """All members have joined, or the time is up."""
        if group.state is not PREPARING_REBALANCE:
            return
        for member in [each for each in group.members.values() if not each.awaits_join and not each.is_static]:
            self._drop(group, member)
        if group.members and not group.elect_joined_leader():
            # There are only static members, and none has joined. Wait until one joins or their sessions end.
            self._wait_for_members(group)
            return
        group.next_generation(self._clock_ms())
        if not group.members:
            logger.info("group %s is empty in generation %d", group.group_id, group.generation)
            self.store(group, {}, self._on_empty_stored)
            return
        logger.info("group %s has %d members in generation %d", group.group_id, len(group.members), group.generation)
        members = list(group.members.values())
        group.pending_sync.update(group.members)
        self._in_turns(len(members), self._answer_joins(group, members))
        operation = DelayedSync(group, group.rebalance_timeout_ms, self._on_sync_failed)
        self.rebalance_purgatory.try_complete_else_watch(operation, (("sync", group.group_id),))

    def _answer_joins(self, group: ClassicGroup, members: list[ClassicMember]) -> Steps[None]:
        """Members that are not answered before another rebalance begins take part in that one."""
        generation = group.generation
        for member in members:
            if member.member_id == group.leader_id:
                answer = yield from joined_leader(group, member.member_id)
            else:
                answer = joined(group, member.member_id)
            if group.generation != generation or group.state is not COMPLETING_REBALANCE:
                return
            group.answer_join(member, answer)
            if member.member_id in group.members:
                member.is_new = False
                self.heartbeats.renew(group, member)
            yield

    def _on_empty_stored(self, code: ErrorCode) -> None:
        """If the write failed, a restart loads the previous generation, whose members then time out."""
        if code is not ErrorCode.NONE:
            logger.warning("an empty generation could not be stored: %s", code.name)

    def _on_sync_failed(self, group: ClassicGroup) -> None:
        late = [group.members[member_id] for member_id in group.pending_sync]
        for member in late:
            self._drop(group, member)
        self.prepare_if_possible(group, f"{len(late)} members did not send SyncGroup in time")

    def _on_heartbeat_failed(self, group: ClassicGroup, member_id: str, is_pending: bool) -> None:
        if group.state is DEAD:
            return
        if is_pending:
            self.remove_pending(group, member_id)
            return
        member = group.members.get(member_id)
        if member is not None and not member.is_alive:
            logger.info("member %s of group %s has missed its session timeout", member_id, group.group_id)
            self.remove(group, member, member_reason(member_id, "has missed its session timeout", None))

    def _drop(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Remove the member. Its waiting request gets UNKNOWN_MEMBER_ID, so that a live client joins again."""
        group.answer_join(member, join_error(ErrorCode.UNKNOWN_MEMBER_ID))
        group.answer_sync(member, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)
        self.bounds.note(group)
        self.heartbeats.end(group, member.member_id)

    def _refuse_assignment(self, group: ClassicGroup, code: ErrorCode) -> None:
        for member in list(group.members.values()):
            member.assignment = b""
            if group.answer_sync(member, sync_error(code)):
                self.heartbeats.renew(group, member)


def log_error(_: None, error: Exception | None) -> None:
    if error is not None:
        logger.error("answering the members of a group failed", exc_info=error)
