"""The targets of a consumer group: which partitions each member is to have.

They are computed for a group epoch, from the subscriptions and the previous targets. That looks at every member, so it
is done in turns of the event loop. A small group gets its targets at once, as part of the change that needed them. A
large group continues with its previous targets; the new ones are a change of their own:

    epoch 7, targets of epoch 6    a heartbeat finds new targets due; the computation for epoch 7 begins
    epoch 9, targets of epoch 6    meanwhile one member joins and another leaves
    epoch 9, targets of epoch 7    the computation is done, for the members at its beginning. The member that left is
                                   skipped; the one that joined has no target yet. The next heartbeat that finds new
                                   targets due begins again.

If members have come or left since the computation began, another epoch begins: a static member that returned under
another id kept the target of its old one, and nothing else may correct that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.consumer.assignment import NOTHING, Assignment
from ixion.broker.coordinators.group.consumer.assignors import ASSIGNORS
from ixion.broker.coordinators.group.consumer.assignors.spec import Spec, Subscriber
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.limits import GroupLimits
from ixion.broker.coordinators.group.consumer.records import (
    assignment_epoch_record,
    epoch_record,
    target_record,
    target_tombstone,
)
from ixion.broker.coordinators.group.journal import Draft
from ixion.broker.coordinators.group.topics import Topic, TopicLookup
from ixion.timer.lane import Lane
from ixion.timer.turns import Steps, finish

logger = logging.getLogger(__name__)

AT_ONCE: Final = 2_000  # members, topics and partitions together; some 10 ms
STEP: Final = 16  # members, some 100 µs


class NewTargets:
    """Targets of a large group, with their records for the log."""

    def __init__(self, group: ConsumerGroup, epoch: int, draft: Draft) -> None:
        self.group = group
        self._epoch = epoch
        self.draft = draft
        self._targets: dict[str, Assignment] = {}
        self._changed: set[str] = set()  # the members whose targets are in the draft

    def compare(self, targets: dict[str, Assignment]) -> Steps[None]:
        """Add the records of targets that have changed."""
        group = self.group
        for number, (member_id, target) in enumerate(targets.items()):
            if member_id not in group.targets or group.targets[member_id] != target:
                self._changed.add(member_id)
                self.draft.add(target_record(group.group_id, member_id, target))
            self._targets[member_id] = target or NOTHING
            if number % STEP == 0:
                yield

    def apply(self, now_ms: int) -> None:
        """Apply them to the group in one go, and complete the draft.

        This looks only at the members that joined or left since the computation began: looking at all of them took 50
        ms in a group of 100,000.
        """
        group, targets, draft = self.group, self._targets, self.draft
        same_members = True
        for member_id in sorted(group.came_or_gone):
            is_member = member_id in group.members
            same_members = same_members and is_member == (member_id in targets)
            if member_id in self._changed:
                if not is_member:
                    del targets[member_id]
                    draft.add(target_tombstone(group.group_id, member_id))
            elif member_id in group.targets:
                targets[member_id] = group.targets[member_id]
            else:
                targets.pop(member_id, None)
        group.targets = targets
        group.came_or_gone.clear()
        group.assignment_epoch, group.assigned_ms = self._epoch, now_ms
        draft.add(assignment_epoch_record(group))
        if not same_members:
            group.epoch += 1
            draft.add(epoch_record(group))


class Targets:
    def __init__(
        self,
        topics: TopicLookup,
        limits: GroupLimits,
        lane: Lane,
        *,
        draft: Callable[[str], Draft],
        on_ready: Callable[[NewTargets], None],
    ) -> None:
        """`draft` begins a change of a group, by its id; `on_ready` applies and writes targets that took long."""
        self._topics = topics
        self._limits = limits
        self._lane = lane
        self._draft = draft
        self._on_ready = on_ready

    def compute(self, change: Change) -> None:
        group = change.group
        topics = group.subscribed(self._topics)
        steps = self._compute(group, topics)
        if len(group.members) + len(topics) + sum([topic.partitions for topic in topics]) <= AT_ONCE:
            change.set_targets(finish(steps), group.epoch, change.now_ms)
        else:
            group.is_computing = True
            group.came_or_gone.clear()
            self._lane.run(
                self._go_on(group, group.epoch, steps),
                partial(self._computed, group),
                lambda: not group.dead,
                at_once=False,
            )

    def _compute(self, group: ConsumerGroup, topics: list[Topic]) -> Steps[dict[str, Assignment]]:
        partitions = {topic.topic_id: topic.partitions for topic in topics}
        ids = {topic.name: topic.topic_id for topic in topics}
        readers: dict[str, Subscriber] = {}
        for number, member in enumerate(list(group.members.values())):
            readers[member.member_id] = Subscriber(
                topics=frozenset([ids[name] for name in ids.keys() & group.topics_of(member, self._topics)]),
                before=group.target(member.member_id),
                instance_id=member.subscription.instance_id,
            )
            if number % STEP == 0:
                yield
        assign = ASSIGNORS[group.demand.assignor(self._limits.assignors)]
        return (yield from assign(Spec(readers=readers, partitions=partitions)))

    def _go_on(self, group: ConsumerGroup, epoch: int, steps: Steps[dict[str, Assignment]]) -> Steps[NewTargets]:
        new = NewTargets(group, epoch, self._draft(group.group_id))
        yield from new.compare((yield from steps))
        return new

    def _computed(self, group: ConsumerGroup, new: NewTargets | None, error: Exception | None) -> None:
        group.is_computing = False
        if new is None:
            logger.error("computing the targets of group %s failed", group.group_id, exc_info=error)
        else:
            self._on_ready(new)
