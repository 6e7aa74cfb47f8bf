"""Which member of a streams group gets which tasks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ixion.broker.coordinators.group.streams.assignor import Candidate, Spec, assign
from ixion.broker.coordinators.group.streams.tasks import NO_TASKS, Task, Tasks, each_of, grouped
from ixion.timer.turns import finish

Shares = dict[str, Tasks]


def spread(
    processes: dict[str, str],
    *subtopologies: tuple[str, int, bool],
    standbys: int = 0,
    before: Shares | None = None,
) -> Shares:
    """`processes` maps members to their processes."""
    members = {each: Candidate(process, (before or {}).get(each, NO_TASKS)) for each, process in processes.items()}
    return finish(assign(Spec(members, subtopologies, standbys)))


def alone(*members: str) -> dict[str, str]:
    return {each: each for each in members}


def actives(shares: Shares) -> dict[str, set[Task]]:
    return {member: set(each_of(tasks.active)) for member, tasks in shares.items()}


def standbys(shares: Shares) -> dict[str, set[Task]]:
    return {member: set(each_of(tasks.standby)) for member, tasks in shares.items()}


def test_one_member_has_everything_and_no_standby() -> None:
    shares = spread(alone("a"), ("0", 2, False), ("1", 2, True), standbys=1)
    assert actives(shares) == {"a": {("0", 0), ("0", 1), ("1", 0), ("1", 1)}}
    assert standbys(shares) == {"a": set()}


def test_tasks_with_state_are_spread_by_themselves() -> None:
    shares = spread(alone("a", "b"), ("0", 3, False), ("1", 4, True))
    for mine in actives(shares).values():
        assert sum(subtopology == "1" for subtopology, _ in mine) == 2
        assert len(mine) in (3, 4)


def test_a_standby_is_in_another_process_than_its_task() -> None:
    processes = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    shares = spread(processes, ("0", 4, True), standbys=1)
    for member, copies in standbys(shares).items():
        for task in copies:
            owner = next(each for each, mine in actives(shares).items() if task in mine)
            assert processes[owner] != processes[member]
    assert sorted(len(each) for each in standbys(shares).values()) == [1, 1, 1, 1]


def test_the_standby_takes_over_when_the_active_member_leaves() -> None:
    before = spread(alone("a", "b", "c"), ("0", 3, True), standbys=1)
    gone = "a"
    copies = next(member for member, mine in standbys(before).items() if actives(before)[gone] & mine)
    left = {each for each in "abc" if each != gone}
    after = spread(alone(*left), ("0", 3, True), standbys=1, before=before)
    assert actives(before)[gone] <= actives(after)[copies]


def test_members_that_stay_keep_their_tasks() -> None:
    before = spread(alone("a", "b"), ("0", 4, True))
    after = spread(alone("a", "b", "c"), ("0", 4, True), before=before)
    assert len(actives(after)["c"]) == 1
    for member in "ab":
        assert actives(after)[member] <= actives(before)[member]


@given(
    st.lists(st.sampled_from("pqrs"), min_size=1, max_size=7),
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=4),
    st.integers(0, 3),
    st.integers(0, 6),
    st.integers(0, 2),
)
def test_any_group(processes: list[str], sizes: list[tuple[int, bool]], copies: int, leaving: int, coming: int) -> None:
    subtopologies = [(str(number), count, has_state) for number, (count, has_state) in enumerate(sizes)]
    members = {f"m{number}": process for number, process in enumerate(processes)}
    first = spread(members, *subtopologies, standbys=copies)
    check(first, members, subtopologies, copies)
    again = spread(members, *subtopologies, standbys=copies, before=first)
    assert actives(again) == actives(first), "nothing has changed"
    later = dict(list(members.items())[leaving:]) | {f"n{number}": "new" for number in range(coming)}
    if later:
        after = spread(later, *subtopologies, standbys=copies, before=first)
        check(after, later, subtopologies, copies)
        if not coming:
            total = {
                has_state: sum(count for _, count, has in subtopologies if has == has_state) for has_state in (0, 1)
            }
            if not total[0]:
                for member, mine in actives(after).items():
                    assert actives(first)[member] <= mine, "a member that stays has no less than it had"


def check(shares: Shares, members: dict[str, str], subtopologies: list[tuple[str, int, bool]], copies: int) -> None:
    tasks = {(name, number) for name, count, _ in subtopologies for number in range(count)}
    stateful = {(name, number) for name, count, has_state in subtopologies if has_state for number in range(count)}
    owned = actives(shares)
    assert Counter(task for mine in owned.values() for task in mine) == Counter(tasks), "each task is active once"
    assert max(map(len, owned.values())) - min(map(len, owned.values())) <= 1
    of_state = [len(mine & stateful) for mine in owned.values()]
    assert max(of_state) - min(of_state) <= 1
    owner = {task: members[member] for member, mine in owned.items() for task in mine}
    places: dict[Task, list[str]] = {}
    for member, mine in standbys(shares).items():
        for task in mine:
            places.setdefault(task, []).append(members[member])
    assert places.keys() <= stateful
    for task in stateful:
        found = places.get(task, [])
        assert len(found) == min(copies, len(set(members.values())) - 1)
        assert len({owner[task], *found}) == 1 + len(found), "one copy in a process"
    assert grouped(()) == {}
