"""StreamsGroupHeartbeat: the one request of the streams protocol.

A heartbeat with epoch 0 joins and brings the topology, with -1 leaves, with -2 leaves for a while (static members).
With any other epoch the member is alive, and may report the tasks that it has. The answer carries the member's epoch
and the status of the group; and its tasks if they changed, if it joins, or if it missed an answer.

While the group has no targets for its epoch yet, the answer asks for the next heartbeat when there may be some.
(In Kafka they wait for the heartbeat interval: five seconds.)
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ixion.broker.coordinators.group.bounds import Bounds
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.consumer.rules import JOIN, LEAVE_FOR_A_WHILE
from ixion.broker.coordinators.group.streams.change import StreamsChange
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.member import Profile, StreamsMember, bytes_of
from ixion.broker.coordinators.group.streams.reconcile import reconcile
from ixion.broker.coordinators.group.streams.rules import check_epoch, check_tasks, find_member
from ixion.broker.coordinators.group.streams.states import MemberState, StatusCode
from ixion.broker.coordinators.group.streams.targets import StreamsTargets
from ixion.broker.coordinators.group.streams.tasks import NO_TASKS, Numbers, Tasks, pairs
from ixion.broker.coordinators.group.streams.topology import Topology
from ixion.broker.coordinators.group.streams.watch import StreamsWatch
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.config.streams_group import NUM_STANDBY_REPLICAS, StreamsGroupSettings
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages import k88_streams_group_heartbeat as wire

MEMBERS_PER_MS: Final = 10  # of the time between two computations, as in a consumer group
SOON_MS: Final = 100  # the shortest time to the next heartbeat
ACCEPTABLE_LAG: Final = 0  # as Kafka 4.3 answers: it has no warm-up tasks
STANDBYS: Final = NUM_STANDBY_REPLICAS.name.removeprefix("streams.")


class StreamsHeartbeats:
    def __init__(
        self,
        topics: TopicLookup,
        targets: StreamsTargets,
        watch: StreamsWatch,
        settings: StreamsGroupSettings,
        bounds: Bounds,
    ) -> None:
        self._topics = topics
        self._targets = targets
        self._watch = watch
        self._settings = settings
        self._bounds = bounds

    def beat(
        self,
        change: StreamsChange,
        request: wire.StreamsGroupHeartbeatRequest,
        caller: Caller,
        owned: Tasks | None,
        topology: Topology | None,
    ) -> wire.StreamsGroupHeartbeatResponse:
        """A member joins or stays. KafkaError if it may not; nothing is changed then."""
        group = change.group
        if request.member_epoch == JOIN:
            owned = NO_TASKS
        old, is_replaced = self._known(group, request, owned)
        before = Profile() if old is None else old.profile
        profile = _updated(before, request, caller, topology)
        new_topology = self._new_topology(group, old, topology)
        self._check_room(group, request.member_id, profile, new_topology)
        was_empty = not group.members
        member = self._member(change, request.member_id, old, is_replaced)
        if old is None or is_replaced or before != profile:
            change.put(member, profile)
            change.bump()
        if new_topology is not None:
            change.set_topology(new_topology)
            change.bump()
        if request.shutdown_application:
            group.shutdown_by = member.member_id
        self.look(change)
        delay_ms = self._settings.initial_rebalance_delay_ms(group.group_id)
        if was_empty and delay_ms > 0:
            self._watch.delay(group, delay_ms)
        self.assign_if_due(change)
        had = member.current
        self._follow(change, member, owned)
        if member.current.revoking != had.revoking:
            self._watch.asked_anew(group, member)
        self._watch.alive(group, member)
        assigned = member.current.assigned
        missed = request.member_epoch in (JOIN, had.previous_epoch) or (owned is not None and owned != assigned)
        tells = missed or assigned != had.assigned
        return self._answer(change, member, assigned if tells else None)

    def look(self, change: StreamsChange) -> None:
        """Look at the topics again if they may have changed, and at the settings of the group."""
        group = change.group
        if group.topology is None:
            return
        if group.seen_version != self._topics.version:
            seen = group.hash_topics(self._topics)
            if seen != group.metadata_hash:
                group.metadata_hash = seen
                group.configured = None
                change.bump()
            group.seen_version = self._topics.version
        configured = group.configured
        if configured is None or configured.topology is not group.topology:
            group.configured = None
            self._targets.configure(group)
        self.note_configured(change)
        config = ((STANDBYS, str(self._settings.standby_replicas(group.group_id))),)
        if config != group.config:
            group.config = config
            change.bump()

    def note_configured(self, change: StreamsChange) -> None:
        """Another epoch begins when the topics become right for the topology, or cease to be."""
        group = change.group
        if group.configured is not None and group.topology is not None:
            validated = group.topology.epoch if group.configured.is_ready else -1
            if validated != group.validated_epoch:
                group.validated_epoch = validated
                change.bump()

    def assign_if_due(self, change: StreamsChange, *, at_once: bool = False) -> None:
        """Compute targets, unless they are those of the group's epoch or the last ones are too young."""
        group = change.group
        if group.epoch <= group.assignment_epoch or group.is_computing or group.configured is None:
            return
        if not self._watch.is_delayed(group) and (at_once or self._wait_ms(group, change.now_ms) <= 0):
            self._targets.compute(change)

    def _wait_ms(self, group: StreamsGroup, now_ms: int) -> int:
        """How long the present targets stay in force, if there are any. A clock set back does not delay new ones."""
        if not group.has_targets:
            return 0
        interval_ms = self._settings.assignment_interval_ms(group.group_id)
        since_ms = now_ms - group.assigned_ms
        return max(interval_ms, len(group.members) // MEMBERS_PER_MS) - since_ms if since_ms >= 0 else 0

    def _known(
        self, group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest, owned: Tasks | None
    ) -> tuple[StreamsMember | None, bool]:
        """The member as it is, if it is one, and whether it is a static one that another takes the place of."""
        epoch, instance_id = request.member_epoch, request.instance_id
        if epoch != JOIN:
            member = find_member(group, request.member_id, instance_id)
            check_epoch(member, epoch, owned)
            if member.current.state is MemberState.UNKNOWN and (owned is None or not owned.is_empty):
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH, "the log has a member state that this broker does not know"
                )
            if group.topology is None:
                raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, "the group has lost its topology; join again")
            if owned is not None and group.configured is not None and group.configured.is_ready:
                check_tasks(group.configured.tasks, owned)
            return member, False
        known = group.members.get(request.member_id)
        static = None if instance_id is None else group.static_member(instance_id)
        if known is None and static is None and len(group.members) >= self._settings.max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {group.group_id} has {len(group.members)} members; {self._settings.max_size} are allowed",
            )
        if static is not None and static is not known:
            if static.epoch != LEAVE_FOR_A_WHILE:
                raise KafkaError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"instance {instance_id} is member {static.member_id}, which has not left; "
                    f"{request.member_id} cannot join",
                )
            return static, True
        return known, static is not None and static.epoch == LEAVE_FOR_A_WHILE

    def _member(
        self, change: StreamsChange, member_id: str, old: StreamsMember | None, is_replaced: bool
    ) -> StreamsMember:
        if old is None:
            return StreamsMember(member_id=member_id)
        if is_replaced:
            self._watch.forget(change.group, old)
            return change.replace(old, member_id)
        return old

    def _new_topology(
        self, group: StreamsGroup, member: StreamsMember | None, sent: Topology | None
    ) -> Topology | None:
        """The topology that the group gets with this heartbeat; None: it keeps its own."""
        known = group.topology
        if sent is None or known is None or sent.epoch > known.epoch:
            return sent
        if sent.epoch < known.epoch or sent.same_as(known):
            return None
        is_alone = not group.members or (member is not None and len(group.members) == 1)
        if not is_alone:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"the group has another topology of epoch {known.epoch}: raise the epoch, or stop all members first",
            )
        return sent

    def _check_room(self, group: StreamsGroup, member_id: str, profile: Profile, topology: Topology | None) -> None:
        known = group.members.get(member_id)
        if known is None or known.profile != profile:
            more = bytes_of(member_id, profile) - (0 if known is None else bytes_of(member_id, known.profile))
            self._bounds.check_texts((group.group_id, member_id, *profile.texts()), more)
        if topology is not None:
            held = 0 if group.topology is None else group.topology.held_bytes
            self._bounds.check_record("topology", len(topology.data), topology.held_bytes - held)

    def _follow(self, change: StreamsChange, member: StreamsMember, owned: Tasks | None) -> None:
        group = change.group
        current = reconcile(
            member.current,
            group.target(member.member_id),
            group.assignment_epoch,
            owned,
            is_free=partial(group.is_free_for, member),
        )
        change.move(member, current)

    def _answer(
        self, change: StreamsChange, member: StreamsMember, assigned: Tasks | None
    ) -> wire.StreamsGroupHeartbeatResponse:
        group = change.group
        status = self._status(group, member)
        return wire.StreamsGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._interval_ms(group, change.now_ms),
            acceptable_recovery_lag=ACCEPTABLE_LAG,
            task_offset_interval_ms=0,
            status=tuple(status),
            active_tasks=None if assigned is None else _told(assigned.active),
            standby_tasks=None if assigned is None else _told(assigned.standby),
            warmup_tasks=None if assigned is None else _told(assigned.warmup),
            endpoint_information_epoch=group.endpoint_epoch,
        )

    def _status(self, group: StreamsGroup, member: StreamsMember) -> list[wire.Status]:
        found: list[wire.Status] = []

        def say(code: StatusCode, detail: str) -> None:
            found.append(wire.Status(status_code=code, status_detail=detail))

        topology, configured = group.topology, group.configured
        if topology is not None and member.profile.topology_epoch < topology.epoch:
            say(
                StatusCode.STALE_TOPOLOGY,
                f"The member's topology epoch {member.profile.topology_epoch} is behind "
                f"the group's topology epoch {topology.epoch}.",
            )
        if self._is_waiting(group):
            say(StatusCode.ASSIGNMENT_DELAYED, "The assignment is being computed, or waits for more members.")
        if configured is not None and configured.status is not None:
            say(configured.status, configured.detail)
        if group.shutdown_by is not None:
            say(
                StatusCode.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_by} encountered a fatal error "
                "and requested a shutdown for the entire application.",
            )
        return found

    def _is_waiting(self, group: StreamsGroup) -> bool:
        return self._watch.is_delayed(group) or group.is_configuring or group.is_computing

    def _interval_ms(self, group: StreamsGroup, now_ms: int) -> int:
        usual_ms = self._settings.heartbeat_interval_ms(group.group_id)
        configured = group.configured
        if configured is not None and not configured.is_ready:
            return usual_ms  # clients give up on missing topics after two intervals
        if self._watch.is_delayed(group):
            return min(usual_ms, self._settings.initial_rebalance_delay_ms(group.group_id) + SOON_MS)
        if group.epoch > group.assignment_epoch:
            return min(usual_ms, max(self._wait_ms(group, now_ms), SOON_MS))
        return usual_ms


def _updated(
    known: Profile, request: wire.StreamsGroupHeartbeatRequest, caller: Caller, topology: Topology | None
) -> Profile:
    """Fields that the request leaves out stay as they were."""
    endpoint, tags = request.user_endpoint, request.client_tags
    return Profile(
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=caller.client_id,
        client_host=caller.host,
        rebalance_timeout_ms=(
            known.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        topology_epoch=known.topology_epoch if topology is None else topology.epoch,
        process_id=known.process_id if request.process_id is None else request.process_id,
        endpoint=known.endpoint if endpoint is None else (endpoint.host, endpoint.port),
        tags=known.tags if tags is None else tuple(sorted((tag.key, tag.value) for tag in tags)),
    )


def _told(kind: Numbers) -> tuple[wire.TaskIds, ...]:
    return tuple(wire.TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in pairs(kind))
