"""Serves the requests of share groups (KIP-932): heartbeat, describe, and the ends of a group's life.

A heartbeat goes through three steps, and is answered after the last:

    1  the member joins, or its subscription changes                        written
    2  share partitions that the group needs are initialized                written, share coordinator, written
    3  the group's targets are computed if they are due; the member moves   written

Kafka answers after step 1, so that a new group gets no partitions before its second heartbeat, five seconds later. Here
the first answer has them. If step 2 takes longer than `PATIENCE_MS`, the heartbeat is answered without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.bounds import Bounds
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.consumer.assignment import NOTHING, Assignment, pairs
from ixion.broker.coordinators.group.consumer.deadlines import Deadlines
from ixion.broker.coordinators.group.consumer.rules import JOIN, LEAVE, is_blank
from ixion.broker.coordinators.group.consumer_writes import ConsumerWrites
from ixion.broker.coordinators.group.journal import Journal
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share import simple
from ixion.broker.coordinators.group.share.describe import described, not_described
from ixion.broker.coordinators.group.share.group import ShareGroup, ShareMember
from ixion.broker.coordinators.group.share.partitions import SharePartitions
from ixion.broker.coordinators.group.share.records import (
    Entry,
    assignment_epoch_record,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    partitions_record,
    target_record,
)
from ixion.broker.coordinators.group.share.rules import check_epoch, check_request, find_member, no_share_group
from ixion.broker.coordinators.group.share.states import ShareStates
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.config.share_group import ShareGroupSettings
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages import k76_share_group_heartbeat as wire
from ixion.language.protocol.messages.k77_share_group_describe import DescribedGroup
from ixion.timer.lane import Lane
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

PATIENCE_MS: Final = 3_000  # of a heartbeat for the share coordinator; clients wait for 30 s
SHARE_GROUPS: Final = 1  # the level of share.version that allows them
STEP: Final = 16

Respond = Callable[[wire.ShareGroupHeartbeatResponse], None]


class ShareProtocol:
    def __init__(
        self,
        shards: Shards,
        journal: Journal,
        bounds: Bounds,
        topics: TopicLookup,
        states: Callable[[], ShareStates],
        settings: ShareGroupSettings,
        *,
        timer: Timer,
        clock_ms: Callable[[], int],
        version: Callable[[], int],
    ) -> None:
        """`version` is the present level of share.version."""
        self._shards = shards
        self._bounds = bounds
        self._topics = topics
        self.settings = settings
        self._timer = timer
        self._clock_ms = clock_ms
        self._version = version
        self._writes = ConsumerWrites(shards, journal, bounds)
        self._lane = Lane(partial(timer.call_later, 0), fair=True)
        self.partitions = SharePartitions(shards, self._writes, topics, states, self._lane)
        self._deadlines = Deadlines(timer)
        self._waiting: dict[ShareGroup, list[Callable[[], None]]] = {}  # heartbeats in step 2

    @property
    def is_enabled(self) -> bool:
        return self._version() >= SHARE_GROUPS

    # Requests.

    def heartbeat(self, request: wire.ShareGroupHeartbeatRequest, caller: Caller, respond: Respond) -> None:
        try:
            self._heartbeat(request, caller, respond)
        except KafkaError as error:
            respond(refusal(error.code, error.message))

    def describe(self, group_id: str) -> Steps[DescribedGroup]:
        found = self.find(group_id)
        if isinstance(found, ErrorCode):
            text = f"Group {group_id} not found." if found is ErrorCode.GROUP_ID_NOT_FOUND else None
            return not_described(group_id, found, text)
        return (yield from described(found[1], self._topics))

    def find(self, group_id: str) -> tuple[GroupShard, ShareGroup] | ErrorCode:
        if not self.is_enabled:
            return ErrorCode.UNSUPPORTED_VERSION
        shard = self._shards.find(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        return (shard, group) if isinstance(group, ShareGroup) else ErrorCode.GROUP_ID_NOT_FOUND

    def may_make(self, group_id: str) -> bool:
        """Whether there is no group of this name, of any type, and there may be one."""
        if not self.is_enabled or is_blank(group_id):
            return False
        shard = self._shards.find(group_id)
        return not isinstance(shard, ErrorCode) and group_id not in shard.groups

    def find_or_make(self, group_id: str) -> tuple[GroupShard, ShareGroup] | ErrorCode:
        """A new group has no record in the log yet."""
        found = self.find(group_id)
        if not isinstance(found, ErrorCode) or not self.may_make(group_id):
            return found
        shard = self._shards.find_for(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups[group_id] = ShareGroup(group_id)
        self._writes.note(group)
        return shard, group

    # The life of a group.

    def delete_states(self, shard: GroupShard, group: ShareGroup, done: Callable[[ErrorCode], None]) -> None:
        """Before the group is deleted. Meanwhile nobody can join it."""
        group.is_going = True

        def deleted(code: ErrorCode) -> None:
            group.is_going = False
            done(code)

        self.partitions.delete(shard, group, [*group.known, *group.deleting], deleted)

    def forget_topics(self) -> Steps[None]:
        """Topics were deleted."""
        for shard in self._shards:
            for group in [] if shard.loading else list(shard.groups.values()):
                if isinstance(group, ShareGroup) and self._shards.holds(shard):
                    self.partitions.forget(shard, group)
                yield

    def resume(self, group: ShareGroup) -> None:
        self._writes.note(group)
        for member in group.members.values():
            self._alive(group, member.member_id)
        if group.deleting:  # the broker stopped before it was done
            self._timer.call_later(0, self._delete_again, group)

    def unload(self, group: ShareGroup) -> None:
        group.dead = True
        self._bounds.hold(group.group_id, 0)
        for member_id in group.members:
            self._deadlines.cancel((group.group_id, member_id))
        for go_on in self._waiting.pop(group, ()):
            go_on()

    def stop(self) -> None:
        self._deadlines.clear()

    # Step 1.

    def _heartbeat(self, request: wire.ShareGroupHeartbeatRequest, caller: Caller, respond: Respond) -> None:
        if not self.is_enabled:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "share groups need share.version 1")
        check_request(request)
        shard = self._shards.find_for(request.group_id)
        if isinstance(shard, ErrorCode):
            raise KafkaError(shard)
        group = shard.groups.get(request.group_id)
        if group is None and request.member_epoch == JOIN:
            group = ShareGroup(request.group_id)
        if not isinstance(group, ShareGroup):
            raise no_share_group(request.group_id)
        if group.is_going:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group is being deleted")
        if request.member_epoch == LEAVE:
            member = find_member(group, request.member_id)
            records = self._removed(group, member)
            answer = wire.ShareGroupHeartbeatResponse(
                error_code=ErrorCode.NONE,
                member_id=request.member_id,
                member_epoch=LEAVE,
                heartbeat_interval_ms=self.settings.heartbeat_interval_ms(group.group_id),
            )
            self._writes.write(shard, records, answer, respond, refusal)
            return
        records = self._join_or_stay(group, request, caller)
        shard.groups[request.group_id] = group
        self._alive(group, request.member_id)
        wanted = [] if group.is_initializing else self._look(group, records)
        self._writes.note(group)

        def go_on() -> None:
            self._assign(shard, group, request, [], respond)

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:  # else the group was unloaded
                self.partitions.initialize(shard, group, wanted, partial(self._initialized, group))

        if wanted:
            group.is_initializing = True
            records.append(partitions_record(group))
            self._wait(group, go_on)
            self._writes.write(shard, records, ErrorCode.NONE, written, lambda code: code)
        elif group.is_initializing:
            self._writes.write_quietly(shard, records)
            self._wait(group, go_on)
        else:
            self._assign(shard, group, request, records, respond)

    def _join_or_stay(self, group: ShareGroup, request: wire.ShareGroupHeartbeatRequest, caller: Caller) -> list[Entry]:
        """The member as the request describes it. KafkaError if it may not be in the group; nothing is changed then."""
        known = group.members.get(request.member_id)
        if request.member_epoch != JOIN:
            known = find_member(group, request.member_id)
            check_epoch(known, request.member_epoch)
        elif known is None and len(group.members) >= self.settings.max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {group.group_id} has {len(group.members)} members; {self.settings.max_size} are allowed",
            )
        before = known or ShareMember(member_id=request.member_id)
        names = request.subscribed_topic_names
        member = replace(
            before,
            rack_id=before.rack_id if request.rack_id is None else request.rack_id,
            client_id=caller.client_id,
            client_host=caller.host,
            topics=before.topics if names is None else frozenset(names),
        )
        if known == member:
            return []
        texts = (group.group_id, member.member_id, member.client_id, member.rack_id or "", *member.topics)
        self._bounds.check_texts(texts, member.held_bytes - (0 if known is None else known.held_bytes))
        group.put(member)
        if known is None or known.topics != member.topics:
            group.seen_version = -1
            group.epoch += 1
            group.metadata_hash = group.hash_topics(self._topics)
            return [member_record(group.group_id, member), epoch_record(group)]
        return [member_record(group.group_id, member)]

    def _look(self, group: ShareGroup, records: list[Entry]) -> list[tuple[tuple[bytes, int], int]]:
        """Look at the topics again if they may have changed: the partitions that are to be initialized."""
        version = self._topics.version
        if group.seen_version == version:
            return []
        seen = group.hash_topics(self._topics)
        if seen != group.metadata_hash:
            group.metadata_hash = seen
            group.epoch += 1
            records.append(epoch_record(group))
        group.seen_version = version
        return self.partitions.begin(group)

    # Step 2.

    def _wait(self, group: ShareGroup, go_on: Callable[[], None]) -> None:
        """`go_on` is called once: when the group is initialized, or after PATIENCE_MS."""

        waiting = self._waiting.setdefault(group, [])

        def late() -> None:
            waiting.remove(in_time)
            go_on()

        timeout = self._timer.call_later(PATIENCE_MS, late)

        def in_time() -> None:
            timeout.cancel()
            go_on()

        waiting.append(in_time)

    def _initialized(self, group: ShareGroup) -> None:
        self._writes.note(group)
        for go_on in self._waiting.pop(group, ()):
            go_on()

    # Step 3.

    def _assign(
        self,
        shard: GroupShard,
        group: ShareGroup,
        request: wire.ShareGroupHeartbeatRequest,
        records: list[Entry],
        respond: Respond,
    ) -> None:
        def go_on() -> None:
            member = group.members.get(request.member_id)
            if not self._shards.holds(shard) or shard.groups.get(group.group_id) is not group:
                respond(refusal(ErrorCode.NOT_COORDINATOR))
            elif member is None:
                respond(refusal(ErrorCode.UNKNOWN_MEMBER_ID))
            else:
                answer = self._answer(group, member, request, records)
                self._writes.note(group)
                self._writes.write(shard, records, answer, respond, refusal)

        if self._is_due(group, is_joining=request.member_epoch == JOIN):
            group.is_computing = True
            epoch = group.epoch

            def computed(targets: dict[str, Assignment] | None, error: Exception | None) -> None:
                group.is_computing = False
                if targets is None:
                    logger.error("computing the targets of share group %s failed", group.group_id, exc_info=error)
                else:
                    records.extend(self._set_targets(group, targets, epoch))
                go_on()

            self._lane.run(self._targets(group), computed)
        else:
            go_on()

    def _is_due(self, group: ShareGroup, *, is_joining: bool) -> bool:
        """Nothing has to be revoked first, so a member that joins gets its partitions within the interval, too."""
        if group.epoch <= group.assignment_epoch or group.is_computing:
            return False
        interval_ms = self.settings.assignment_interval_ms(group.group_id)
        return is_joining or not 0 <= self._clock_ms() - group.assigned_ms < interval_ms

    def _targets(self, group: ShareGroup) -> Steps[dict[str, Assignment]]:
        topics = {
            topic.name: (topic.topic_id, frozenset(known.initialized))
            for topic in group.subscribed(self._topics)
            if (known := group.known.get(topic.topic_id)) is not None and known.initialized
        }
        yield
        members: dict[str, frozenset[bytes]] = {}
        for number, member in enumerate(list(group.members.values())):
            names = topics.keys() & member.topics
            members[member.member_id] = frozenset([topics[name][0] for name in names])
            if number % STEP == 0:
                yield
        return (yield from simple.assign(members, dict(topics.values()), dict(group.targets)))

    def _set_targets(self, group: ShareGroup, targets: dict[str, Assignment], epoch: int) -> list[Entry]:
        records: list[Entry] = []
        for member_id, target in targets.items():
            if member_id in group.members and group.targets.get(member_id) != target:
                group.targets[member_id] = target or NOTHING
                records.append(target_record(group.group_id, member_id, target))
        group.assignment_epoch, group.assigned_ms = epoch, self._clock_ms()
        return [*records, assignment_epoch_record(group)]

    def _answer(
        self,
        group: ShareGroup,
        member: ShareMember,
        request: wire.ShareGroupHeartbeatRequest,
        records: list[Entry],
    ) -> wire.ShareGroupHeartbeatResponse:
        names = member.topics
        target = {
            topic_id: numbers
            for topic_id, numbers in group.target(member.member_id).items()
            if (topic := self._topics.by_id(topic_id)) is not None and topic.name in names
        }
        has_changed = target != member.assigned
        # Without a target computed since it joined, the member keeps its epoch, which is 0 at first.
        epoch = group.assignment_epoch if member.member_id in group.targets or not group.members else member.epoch
        epoch = max(epoch, member.epoch) or group.assignment_epoch
        if has_changed or epoch != member.epoch:
            member = replace(member, epoch=epoch, previous_epoch=member.epoch, assigned=target)
            group.put(member)
            records.append(current_record(group.group_id, member))
        tells_all = request.member_epoch != member.epoch or request.subscribed_topic_names is not None or has_changed
        return wire.ShareGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(group.group_id),
            assignment=_told(target) if tells_all else None,
        )

    # Ends.

    def _alive(self, group: ShareGroup, member_id: str) -> None:
        timeout_ms = self.settings.session_timeout_ms(group.group_id)
        self._deadlines.set((group.group_id, member_id), timeout_ms, partial(self._expire, group, member_id))

    def _expire(self, group: ShareGroup, member_id: str) -> None:
        shard = self._shards.find(group.group_id)
        member = group.members.get(member_id)
        if isinstance(shard, ErrorCode) or shard.groups.get(group.group_id) is not group or member is None:
            return
        logger.info("member %s of share group %s is removed: its session ended", member_id, group.group_id)
        self._writes.write_quietly(shard, self._removed(group, member))

    def _removed(self, group: ShareGroup, member: ShareMember) -> list[Entry]:
        group.remove(member.member_id)
        self._deadlines.cancel((group.group_id, member.member_id))
        group.epoch += 1
        group.metadata_hash = group.hash_topics(self._topics)
        self._writes.note(group)
        return [*member_tombstones(group.group_id, member.member_id), epoch_record(group)]

    def _delete_again(self, group: ShareGroup) -> None:
        found = self.find(group.group_id)
        if not isinstance(found, ErrorCode) and found[1] is group and group.deleting:
            self.partitions.delete(found[0], group, list(group.deleting), lambda _: None)


def refusal(code: ErrorCode, message: str | None = None) -> wire.ShareGroupHeartbeatResponse:
    return wire.ShareGroupHeartbeatResponse(
        error_code=code,
        error_message=message or code.explanation,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )


def _told(assignment: Assignment) -> wire.Assignment:
    topics: Sequence[tuple[bytes, tuple[int, ...]]] = pairs(assignment)
    return wire.Assignment(
        topic_partitions=tuple(
            wire.TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in topics
        )
    )
