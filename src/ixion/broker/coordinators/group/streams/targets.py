"""The targets of a streams group, and the topics that its topology needs, both computed in turns if that takes long.

A small group gets them at once, as part of the change that needed them. A large one goes on with what it has; what is
computed is a change of its own, as in a consumer group (see `consumer.targets`), and heartbeats are answered with the
status ASSIGNMENT_DELAYED meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.journal import Draft
from ixion.broker.coordinators.group.streams.assignor import Candidate, Spec, assign
from ixion.broker.coordinators.group.streams.change import StreamsChange
from ixion.broker.coordinators.group.streams.configure import Configured, configure
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.records import (
    assignment_epoch_record,
    epoch_record,
    target_record,
    target_tombstone,
)
from ixion.broker.coordinators.group.streams.tasks import NO_TASKS, Tasks
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.timer.lane import Lane
from ixion.timer.turns import Steps, finish

logger = logging.getLogger(__name__)

TASKS_AT_ONCE: Final = 300  # members and tasks together; some 5 ms
PARTS_AT_ONCE: Final = 500  # topics of a topology; some 2 ms


class NewTargets:
    """Targets of a large group, with their records for the log."""

    def __init__(self, group: StreamsGroup, epoch: int, draft: Draft) -> None:
        self.group = group
        self.draft = draft
        self._epoch = epoch
        self._targets: dict[str, Tasks] = {}
        self._changed: list[str] = []

    def compare(self, targets: dict[str, Tasks]) -> Steps[None]:
        """Add the records of targets that have changed."""
        self._targets = targets
        for member_id, target in targets.items():
            if self.group.targets.get(member_id) != target:
                self._changed.append(member_id)
                self.draft.add(target_record(self.group.group_id, member_id, target))
            yield

    def apply(self, now_ms: int) -> None:
        """Apply them to the group in one go, and complete the draft."""
        group, draft = self.group, self.draft
        same_members = all((each in group.members) == (each in self._targets) for each in group.came_or_gone)
        group.came_or_gone.clear()
        for member_id in self._changed:
            if member_id in group.members:
                group.set_target(member_id, self._targets[member_id])
            else:
                draft.add(target_tombstone(group.group_id, member_id))
        group.assignment_epoch, group.assigned_ms = self._epoch, now_ms
        draft.add(assignment_epoch_record(group))
        if not same_members:  # nothing else may correct the target of a static member that returned
            group.epoch += 1
            draft.add(epoch_record(group))


class StreamsTargets:
    def __init__(
        self,
        topics: TopicLookup,
        lane: Lane,
        *,
        standbys: Callable[[str], int],
        draft: Callable[[str], Draft],
        on_configured: Callable[[StreamsGroup, Configured], None],
        on_targets: Callable[[NewTargets], None],
    ) -> None:
        """`draft` begins a change of a group, by its id; `on_…` take what took long."""
        self._topics = topics
        self._lane = lane
        self._standbys = standbys
        self._draft = draft
        self._on_configured = on_configured
        self._on_targets = on_targets

    def configure(self, group: StreamsGroup) -> None:
        """Set `configured`, now or later."""
        topology = group.topology
        if topology is None or group.is_configuring:
            return
        steps = configure(topology, group.metadata_hash, self._count)
        if len(topology.required) + len(topology.subtopologies) <= PARTS_AT_ONCE:
            group.configured = finish(steps)
        else:
            group.is_configuring = True
            self._lane.run(steps, partial(self._configured, group), lambda: not group.dead, at_once=False)

    def compute(self, change: StreamsChange) -> None:
        group = change.group
        tasks = 0 if group.configured is None else sum(group.configured.tasks.values())
        if len(group.members) + tasks * (1 + self._standbys(group.group_id)) <= TASKS_AT_ONCE:
            change.set_targets(finish(self._compute(group)))
        else:
            group.is_computing = True
            group.came_or_gone.clear()
            self._lane.run(
                self._go_on(group, group.epoch), partial(self._computed, group), lambda: not group.dead, at_once=False
            )

    def _compute(self, group: StreamsGroup) -> Steps[dict[str, Tasks]]:
        """Without valid topics nobody has tasks; members with an older topology have none either."""
        configured, topology = group.configured, group.topology
        members: dict[str, Candidate] = {}
        targets: dict[str, Tasks] = {}
        is_ready = topology is not None and configured is not None and configured.is_ready
        for member in list(group.members.values()):
            targets[member.member_id] = NO_TASKS
            if topology is not None and is_ready and member.profile.topology_epoch >= topology.epoch:
                before = group.target(member.member_id)
                members[member.member_id] = Candidate(member.profile.process_id, before)
            yield
        if topology is not None and configured is not None and members:
            subtopologies = [
                (each.subtopology_id, configured.tasks[each.subtopology_id], bool(each.state_changelog_topics))
                for each in configured.topology.subtopologies
            ]
            yield
            targets.update((yield from assign(Spec(members, subtopologies, self._standbys(group.group_id)))))
        return targets

    def _go_on(self, group: StreamsGroup, epoch: int) -> Steps[NewTargets]:
        new = NewTargets(group, epoch, self._draft(group.group_id))
        yield from new.compare((yield from self._compute(group)))
        return new

    def _count(self, name: str) -> int | None:
        topic = self._topics.by_name(name)
        return None if topic is None else topic.partitions

    def _configured(self, group: StreamsGroup, found: Configured | None, error: Exception | None) -> None:
        group.is_configuring = False
        if found is None:
            logger.error("looking at the topics of group %s failed", group.group_id, exc_info=error)
        else:
            self._on_configured(group, found)

    def _computed(self, group: StreamsGroup, new: NewTargets | None, error: Exception | None) -> None:
        group.is_computing = False
        if new is None:
            logger.error("computing the targets of group %s failed", group.group_id, exc_info=error)
        else:
            self._on_targets(new)
