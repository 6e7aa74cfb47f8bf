"""The assignor of share groups: what must hold for any group, and that members keep what they have."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.share.simple import assign
from ixion.timer.turns import finish

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


def assigned(
    members: dict[str, set[bytes]], partitions: dict[bytes, int], before: dict[str, Assignment] | None = None
) -> dict[str, Assignment]:
    wanted = {member: frozenset(topics) for member, topics in members.items()}
    return finish(assign(wanted, {topic: range(count) for topic, count in partitions.items()}, before or {}))


def counts(found: dict[str, Assignment]) -> list[int]:
    return [sum(map(len, found[member].values())) for member in sorted(found)]


def test_five_members_share_three_partitions() -> None:
    found = assigned({name: {A} for name in "abcde"}, {A: 3})
    assert [sorted(found[name][A]) for name in "abcde"] == [[0], [1], [2], [0], [1]]


def test_two_members_divide_five_partitions() -> None:
    assert counts(assigned({"a": {A}, "b": {A}}, {A: 5})) == [3, 2]


def test_a_new_member_takes_its_share_and_the_others_keep_theirs() -> None:
    before = assigned({"a": {A}, "b": {A}}, {A: 4})
    after = assigned({"a": {A}, "b": {A}, "c": {A}}, {A: 4}, before)
    assert sorted(counts(after)) == [1, 1, 2]
    assert all(after[name][A] <= before[name][A] for name in "ab")


def test_members_with_different_topics_get_only_those() -> None:
    found = assigned({"a": {A}, "b": {A, B}, "c": {C}}, {A: 4, B: 2})
    assert set(found["b"]) == {A, B}
    assert (set(found["a"]), found["c"]) == ({A}, {})


def test_without_members_or_partitions_there_is_nothing_to_assign() -> None:
    assert assigned({}, {A: 3}) == {}
    assert assigned({"a": {A}}, {}) == {"a": {}}
    assert assigned({"a": set()}, {A: 3}) == {"a": {}}


groups = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.sets(st.sampled_from([A, B, C])), max_size=9)
topics = st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 7))


@settings(max_examples=100, deadline=None)
@given(groups, groups, topics, topics)
def test_every_partition_and_every_member_is_served(
    first: dict[str, set[bytes]], then: dict[str, set[bytes]], few: dict[bytes, int], many: dict[bytes, int]
) -> None:
    before = assigned(first, few)
    found = assigned(then, many, before)
    assert assigned(then, many, found) == found, "a second look changes nothing"
    readers: dict[tuple[bytes, int], int] = {}
    for member, topics_of in found.items():
        assert set(topics_of) <= then[member]
        for topic, numbers in topics_of.items():
            for number in numbers:
                assert number < many[topic]
                readers[topic, number] = readers.get((topic, number), 0) + 1
    for topic, count in many.items():
        if any(topic in wanted for wanted in then.values()):
            assert all(readers.get((topic, number)) for number in range(count)), "no partition is left out"
    for member, wanted in then.items():
        assert found[member] or not wanted & set(many), "no member has nothing to do"
    if len({frozenset(wanted) for wanted in then.values()}) == 1 and (found and readers):
        assert max(counts(found)) - min(counts(found)) <= 1
        assert max(readers.values()) - min(readers.values()) <= 1
