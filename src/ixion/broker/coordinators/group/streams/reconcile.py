"""One step of a member towards its target. No I/O, no clock, nothing is changed.

As in a consumer group (see `consumer.reconcile`): a member first revokes what it should not have, stays at its epoch
until it has, and then gets of its target what is free.

An active task is free if no other member has it, and no other member of the same process has it as standby or warm-up:
a process keeps one copy of the state. A standby or warm-up task is free if no other member of the process has the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ixion.broker.coordinators.group.streams.states import MemberState
from ixion.broker.coordinators.group.streams.tasks import NO_TASKS, Numbers, Task, Tasks, each_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The state of a member on its way to its target."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NO_TASKS
    revoking: Tasks = NO_TASKS  # must be revoked; still the member's own
    since: Mapping[Task, int] = field(default_factory=dict)  # active tasks that it got at this epoch; else at `epoch`

    def has_active(self, task: Task) -> bool:
        return self.assigned.has_active(task) or self.revoking.has_active(task)

    def held_since(self, task: Task) -> int | None:
        """The epoch at which the member got the active task; None if it does not have it."""
        return self.since.get(task, self.epoch) if self.has_active(task) else None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def moved(self, epoch: int, state: MemberState, assigned: Tasks, revoking: Tasks = NO_TASKS) -> Current:
        previous = self.previous_epoch if epoch == self.epoch else self.epoch
        since: dict[Task, int] = {}
        for kept in (assigned, revoking):
            for task in each_of(kept.active):
                given = self.held_since(task) if self.assigned.has_active(task) or kept is revoking else None
                if given is not None and given != epoch:
                    since[task] = given
        return Current(
            epoch=epoch, previous_epoch=previous, state=state, assigned=assigned, revoking=revoking, since=since
        )

    def left(self, epoch: int, first_epoch: int) -> Current:
        """The state of a static member that left for a while; if it returns, it has its tasks since `first_epoch`."""
        since = dict.fromkeys(each_of(self.assigned.active), first_epoch)
        return replace(self, epoch=epoch, revoking=NO_TASKS, since=since)


def reconcile(
    current: Current,
    target: Tasks,
    target_epoch: int,
    owned: Tasks | None,
    *,
    is_free: Callable[[Task, bool], bool],
) -> Current:
    """`owned` is what the member reports to own; None if it reports nothing, which counts as still owning everything.

    `is_free` gets a task and whether it is to be active.
    """
    if current.state is MemberState.UNREVOKED_TASKS and _still_has(owned, current.revoking):
        return current
    if current.is_reconciled_to(target_epoch):
        return current
    keeps = current.assigned.overlap(target)
    revoking = current.assigned.without(keeps)
    if not revoking.is_empty and _still_has(owned, revoking):
        return current.moved(current.epoch, MemberState.UNREVOKED_TASKS, keeps, revoking)
    wants = target.without(keeps)
    ready = Tasks(
        _free(wants.active, True, is_free), _free(wants.standby, False, is_free), _free(wants.warmup, False, is_free)
    )
    state = MemberState.STABLE if ready == wants else MemberState.UNRELEASED_TASKS
    return current.moved(target_epoch, state, keeps.together(ready))


def _free(wants: Numbers, is_active: bool, is_free: Callable[[Task, bool], bool]) -> Numbers:
    found: dict[str, frozenset[int]] = {}
    for subtopology, numbers in wants.items():
        free = frozenset([number for number in numbers if is_free((subtopology, number), is_active)])
        if free:
            found[subtopology] = free
    return found


def _still_has(owned: Tasks | None, asked: Tasks) -> bool:
    return owned is None or asked.touches(owned)
