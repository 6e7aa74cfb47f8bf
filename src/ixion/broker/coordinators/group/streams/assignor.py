"""The assignor of streams groups, by the name of Kafka's: sticky.

Members of one process share its memory and disks, so a standby task never runs in the process of its active task. Tasks
with state are spread evenly first, then those without fill up what is left: numbers of members differ by one at most.

    active     1  the member that has it already              if that has not had its part yet
               2  a member that has a standby or warm-up of it, so that the state is there
               3  the member with the fewest tasks
    standby    1  a process that has had the state: it was active or standby there
               2  the process with the fewest tasks per member

    2 processes, 4 tasks with state, 1 standby each    A: 0_0 0_2, standby 0_1 0_3    B: 0_1 0_3, standby 0_0 0_2
    C joins                                            A: 0_0 0_2    B: 0_1    C: 0_3    and standby tasks move on

With fewer processes than standby tasks need, some tasks have fewer of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from ixion.broker.coordinators.group.streams.tasks import Task, Tasks, each_of, grouped
from ixion.timer.turns import Steps

STEP: Final = 32  # tasks, some 100 µs


class Candidate(NamedTuple):
    """A member, with the target that it had."""

    process_id: str
    before: Tasks


class Spec(NamedTuple):
    members: Mapping[str, Candidate]
    subtopologies: Sequence[tuple[str, int, bool]]  # its tasks, and whether it has state
    standbys: int


def assign(spec: Spec) -> Steps[dict[str, Tasks]]:
    if not spec.members:
        return {}
    spread = Spread(spec)
    yield from spread.look_back(spec)
    stateful: list[Task] = []
    others: list[Task] = []
    for name, count, has_state in spec.subtopologies:
        (stateful if has_state else others).extend([(name, number) for number in range(count)])
        yield
    yield from spread.active(stateful)
    yield from spread.active(others)
    if spec.standbys and len(spread.members_of) > 1:
        yield from spread.standby(stateful, spec.standbys)
    made: dict[str, Tasks] = {}
    for member in spec.members:
        made[member] = Tasks(grouped(spread.actives[member]), grouped(spread.standbys[member]))
        yield
    return made


class Spread:
    def __init__(self, spec: Spec) -> None:
        self.order = sorted(spec.members)
        self.process_of = {member: spec.members[member].process_id for member in self.order}
        self.actives: dict[str, list[Task]] = {member: [] for member in self.order}
        self.standbys: dict[str, list[Task]] = {member: [] for member in self.order}
        self.members_of: dict[str, list[str]] = {}
        for member in self.order:
            self.members_of.setdefault(self.process_of[member], []).append(member)
        self.had_active: dict[Task, str] = {}
        self.had_copy: dict[Task, list[str]] = {}
        self.owner: dict[Task, str] = {}
        self.total = 0
        self.tasks_in = dict.fromkeys(self.members_of, 0)  # by process: active and standby tasks

    def look_back(self, spec: Spec) -> Steps[None]:
        """Who had which task."""
        seen = 0
        for member in self.order:
            before = spec.members[member].before
            for task in each_of(before.active):
                self.had_active[task] = member
                seen += 1
                if seen % STEP == 0:
                    yield
            for copies in (before.standby, before.warmup):
                for task in each_of(copies):
                    self.had_copy.setdefault(task, []).append(member)
                    seen += 1
                    if seen % STEP == 0:
                        yield
        yield

    def active(self, tasks: Sequence[Task]) -> Steps[None]:
        """Every member gets `base` of all tasks so far, and `extra` members one more."""
        self.total += len(tasks)
        base, extra = divmod(self.total, len(self.order))
        extra -= sum(len(mine) > base for mine in self.actives.values())

        def take(member: str, task: Task) -> bool:
            nonlocal extra
            mine = self.actives[member]
            if len(mine) >= base:
                if len(mine) > base or extra <= 0:
                    return False
                extra -= 1
            mine.append(task)
            self.owner[task] = member
            self.tasks_in[self.process_of[member]] += 1
            return True

        rest: list[Task] = []
        for number, task in enumerate(tasks):
            owner = self.had_active.get(task)
            if owner is None or not take(owner, task):
                rest.append(task)
            if number % STEP == 0:
                yield
        left: list[Task] = []
        for number, task in enumerate(rest):
            copies = sorted(self.had_copy.get(task, ()), key=lambda member: (len(self.actives[member]), member))
            if not any(take(member, task) for member in copies):
                left.append(task)
            if number % STEP == 0:
                yield
        heap = [self._rank(member) for member in self.order]
        heapify(heap)
        for number, task in enumerate(left):
            while True:
                _, _, member = heappop(heap)
                if take(member, task):
                    heappush(heap, self._rank(member))
                    break
            if number % STEP == 0:
                yield

    def standby(self, tasks: Sequence[Task], wanted: int) -> Steps[None]:
        heap = [(self._load(process), process) for process in self.members_of]
        heapify(heap)
        inside = {
            process: [(len(self.actives[member]), member) for member in members]
            for process, members in self.members_of.items()
        }
        for members in inside.values():
            heapify(members)
        most = -(-(sum(self.tasks_in.values()) + len(tasks) * wanted) // len(self.order))  # of a member, rounded up

        def copy(process: str, task: Task) -> None:
            count, member = heappop(inside[process])
            heappush(inside[process], (count + 1, member))
            self.standbys[member].append(task)
            self.tasks_in[process] += 1

        for number, task in enumerate(tasks):
            taken = {self.process_of[self.owner[task]]}
            had = [self.had_active[task]] if task in self.had_active else []
            for member in (*had, *sorted(self.had_copy.get(task, ()))):
                process = self.process_of[member]
                if len(taken) <= wanted and process not in taken and self._load(process) < most:
                    taken.add(process)
                    copy(process, task)
            aside: list[str] = []  # a process has one entry in the heap; its load may have grown since
            while len(taken) <= wanted and heap:
                load, process = heappop(heap)
                if load != self._load(process):
                    heappush(heap, (self._load(process), process))
                    continue
                aside.append(process)
                if process not in taken:
                    taken.add(process)
                    copy(process, task)
            for process in aside:
                heappush(heap, (self._load(process), process))
            if number % STEP == 0:
                yield

    def _rank(self, member: str) -> tuple[int, float, str]:
        return len(self.actives[member]), self._load(self.process_of[member]), member

    def _load(self, process: str) -> float:
        return self.tasks_in[process] / len(self.members_of[process])
