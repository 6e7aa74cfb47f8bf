"""A streams group: members, their topology, their targets, and the holders of tasks. No I/O, no clock.

The group epoch, the assignment epoch and the epochs of members mean what they mean in a consumer group. Beside them the
*topology epoch* grows when an application brings another topology, and the *endpoint epoch* when the tasks of a member
with an endpoint change: members that know an older one get the table of endpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof
from typing import Final

from ixion.broker.coordinators.group.streams.configure import Configured
from ixion.broker.coordinators.group.streams.member import Profile, StreamsMember, bytes_of
from ixion.broker.coordinators.group.streams.reconcile import Current
from ixion.broker.coordinators.group.streams.states import StreamsGroupState
from ixion.broker.coordinators.group.streams.tasks import NO_TASKS, Task, Tasks
from ixion.broker.coordinators.group.streams.topology import Topology
from ixion.broker.coordinators.group.topics import TopicLookup, hash_of

BYTES_PER_GROUP: Final = 3_000
BYTES_PER_TASK: Final = 300  # a place in a target, in what a member has, and among the holders


class StreamsGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1  # a joining member has epoch 0, so the first epoch that it gets must be higher
        self.assignment_epoch = 1  # a group without members needs no computation
        self.assigned_ms = 0  # when the targets were computed; 0: never, or not known
        self.metadata_hash = 0  # of the topics at this epoch
        self.validated_epoch = -1  # the topology epoch whose topics were found right
        self.config: tuple[tuple[str, str], ...] = ()  # of the assignor, at this epoch
        self.members: dict[str, StreamsMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.targets: dict[str, Tasks] = {}
        self.topology: Topology | None = None
        self.configured: Configured | None = None  # None: to be found out
        self.seen_version = -1  # of the cluster's topics, at the last look
        self.shutdown_by: str | None = None  # the member that asks all members to shut down
        self.endpoint_epoch = 0
        self.is_configuring = False  # runs in turns of the loop
        self.is_computing = False  # a computation of targets runs, in turns of the loop
        self.came_or_gone: set[str] = set()  # ids of members that came or left since it began
        self.dead = False
        self._members_bytes = 0
        self._target_tasks = 0
        self._holders: dict[Task, set[str]] = {}  # the members that have a task, as whatever

    @property
    def state(self) -> StreamsGroupState:
        if self.dead:
            return StreamsGroupState.DEAD
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.validated_epoch != self.topology.epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.current.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def has_targets(self) -> bool:
        """Whether any member is to have tasks."""
        return self._target_tasks > 0

    @property
    def held_bytes(self) -> int:
        """Roughly the memory that the group takes."""
        topology = 0 if self.topology is None else self.topology.held_bytes
        tasks = max(self._target_tasks, len(self._holders)) * BYTES_PER_TASK
        return BYTES_PER_GROUP + getsizeof(self.group_id) + self._members_bytes + topology + tasks

    def put(self, member: StreamsMember, profile: Profile) -> None:
        """Add the member, or change who it is."""
        known = self.members.get(member.member_id)
        if known is not None:
            self._members_bytes -= bytes_of(known.member_id, known.profile)
        elif self.is_computing:
            self.came_or_gone.add(member.member_id)
        self._members_bytes += bytes_of(member.member_id, profile)
        member.profile = profile
        self.members[member.member_id] = member
        if profile.instance_id is not None:
            self.static_members[profile.instance_id] = member.member_id
        self._claim(member)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self.set_target(member_id, None)
        if member is None:
            return
        if self.is_computing:
            self.came_or_gone.add(member_id)
        self._release(member)
        self._members_bytes -= bytes_of(member_id, member.profile)
        instance_id = member.profile.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]
        if not self.members:
            self.shutdown_by = None

    def move(self, member: StreamsMember, current: Current) -> None:
        """Set the state of the member, and the holders of its tasks with it."""
        self._release(member)
        member.current = current
        self._claim(member)

    def set_target(self, member_id: str, target: Tasks | None) -> None:
        self._target_tasks -= self.targets.pop(member_id, NO_TASKS).size
        if target is not None:
            self.targets[member_id] = target
            self._target_tasks += target.size

    def target(self, member_id: str) -> Tasks:
        return self.targets.get(member_id, NO_TASKS)

    def static_member(self, instance_id: str) -> StreamsMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def is_free_for(self, member: StreamsMember, task: Task, is_active: bool) -> bool:
        """See `reconcile`."""
        for holder in self._holders.get(task, ()):
            if holder != member.member_id:
                other = self.members[holder]
                is_near = other.profile.process_id == member.profile.process_id
                if is_near or (is_active and other.current.has_active(task)):
                    return False
        return True

    def hash_topics(self, topics: TopicLookup) -> int:
        required: Sequence[str] = () if self.topology is None else self.topology.required
        return hash_of([topic for name in required if (topic := topics.by_name(name)) is not None])

    def reads(self, topic: str) -> bool:
        return self.topology is not None and topic in self.topology.readers

    def readers_of(self, topic: str) -> Sequence[str]:
        """The subtopologies that read a topic."""
        return () if self.topology is None else self.topology.readers.get(topic, ())

    def _claim(self, member: StreamsMember) -> None:
        for part in (member.current.assigned, member.current.revoking):
            for task in part.each():
                self._holders.setdefault(task, set()).add(member.member_id)

    def _release(self, member: StreamsMember) -> None:
        for part in (member.current.assigned, member.current.revoking):
            for task in part.each():
                holders = self._holders.get(task)
                if holders is not None:
                    holders.discard(member.member_id)
                    if not holders:
                        del self._holders[task]
