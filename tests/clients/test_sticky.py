"""Sticky assignments: balanced, as much kept as that allows, and never two owners of a partition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.clients.assignors import Assignment, Member, by_range, cooperative_sticky, sticky
from ixion.clients.assignors.sticky_data import read_generation, read_sticky, write_generation, write_sticky
from ixion.clients.metadata import TopicPartition

T = [TopicPartition("t", number) for number in range(6)]
BOTH = frozenset("tu")
PLACES = st.builds(TopicPartition, st.sampled_from("tux"), st.integers(0, 8))
OWNED = st.lists(PLACES, max_size=8, unique=True).map(tuple)
COUNTS = st.fixed_dictionaries({"t": st.integers(0, 9), "u": st.integers(0, 9)})
EQUAL = st.dictionaries(
    st.sampled_from("abcde"), st.builds(Member, st.just(BOTH), OWNED, st.integers(-1, 3)), min_size=1
)
TOPICS = st.sets(st.sampled_from("tu")).map(frozenset)
MIXED = st.dictionaries(st.sampled_from("abcde"), st.builds(Member, TOPICS, OWNED, st.integers(-1, 3)), min_size=1)


def sizes(assignment: Assignment) -> list[int]:
    return sorted(len(places) for places in assignment.values())


def test_the_example_of_the_module() -> None:
    members = {"a": Member(frozenset("t"), tuple(T[:4]), 1), "b": Member(frozenset("t"))}
    assert sticky(members, {"t": 4}) == {"a": T[:2], "b": T[2:4]}


def test_a_member_that_leaves_moves_only_its_own() -> None:
    members = {"a": Member(frozenset("t"), (T[0], T[3]), 1), "b": Member(frozenset("t"), (T[1], T[4]), 1)}
    found = sticky(members, {"t": 6})
    assert {T[0], T[3]} < set(found["a"])
    assert {T[1], T[4]} < set(found["b"])


def test_of_two_claims_the_newer_counts_and_of_equal_ones_none() -> None:
    topics = frozenset("t")
    newer = {"a": Member(topics, (T[0],), 1), "b": Member(topics, (T[0],), 2)}
    assert sticky(newer, {"t": 1}) == {"a": [], "b": [T[0]]}
    equal = {"a": Member(topics, (T[0],), 2), "b": Member(topics, (T[0],), 2)}
    assert sizes(sticky(equal, {"t": 1})) == [0, 1]
    assert cooperative_sticky(equal, {"t": 1}) == {"a": [], "b": []}


def test_a_partition_that_changes_hands_waits_for_its_owner() -> None:
    members = {"a": Member(frozenset("t"), tuple(T[:4]), 1), "b": Member(frozenset("t"))}
    assert cooperative_sticky(members, {"t": 4}) == {"a": T[:2], "b": []}
    after = {"a": Member(frozenset("t"), tuple(T[:2]), 2), "b": Member(frozenset("t"), (), 2)}
    assert cooperative_sticky(after, {"t": 4}) == {"a": T[:2], "b": T[2:4]}


@given(EQUAL, COUNTS)
@settings(deadline=None, max_examples=50)
def test_equal_subscriptions_differ_by_one_at_most(members: dict[str, Member], counts: dict[str, int]) -> None:
    found = sizes(sticky(members, counts))
    assert sum(found) == sum(counts.values())
    assert found[-1] - found[0] <= 1


@given(MIXED, COUNTS)
@settings(deadline=None, max_examples=50)
def test_no_single_move_makes_it_more_even(members: dict[str, Member], counts: dict[str, int]) -> None:
    found = sticky(members, counts)
    given_out = sorted(place for places in found.values() for place in places)
    wanted = {topic for member in members.values() for topic in member.topics}
    assert given_out == [TopicPartition(t, n) for t in sorted(counts) if t in wanted for n in range(counts[t])]
    for member, places in found.items():
        for place in places:
            assert place.topic in members[member].topics
            for other in members:
                if place.topic in members[other].topics:
                    assert len(places) - len(found[other]) <= 1


@given(MIXED, COUNTS)
@settings(deadline=None, max_examples=50)
def test_what_was_assigned_stays(members: dict[str, Member], counts: dict[str, int]) -> None:
    first = sticky(members, counts)
    again = {name: Member(member.topics, tuple(first[name]), 9) for name, member in members.items()}
    for assign in (sticky, cooperative_sticky):
        assert {name: sorted(places) for name, places in assign(again, counts).items()} == {
            name: sorted(places) for name, places in first.items()
        }


@given(MIXED, COUNTS)
@settings(deadline=None, max_examples=50)
def test_cooperative_assignors_assign_no_partition_that_another_member_may_read(
    members: dict[str, Member], counts: dict[str, int]
) -> None:
    """Of one generation, where each partition has one owner."""
    taken: set[TopicPartition] = set()
    for name, member in members.items():
        owned = tuple(place for place in member.owned if place not in taken)
        taken.update(owned)
        members[name] = Member(member.topics, owned, 1)
    for name, places in cooperative_sticky(members, counts).items():
        for other, member in members.items():
            assert other == name or not set(places) & set(member.owned)


def test_a_member_without_topics_gets_nothing_and_takes_nothing() -> None:
    members = {"a": Member(frozenset("t"), tuple(T[:3]), 8), "b": Member(frozenset())}
    for assign in (sticky, cooperative_sticky):
        assert assign(members, {"t": 3}) == {"a": T[:3], "b": []}


def test_racks_are_matched_where_the_balance_allows() -> None:
    near = {place: frozenset("xy"[place.partition % 2]) for place in T}
    members = {"a": Member(frozenset("t"), rack="x"), "b": Member(frozenset("t"), rack="y")}
    for assign in (by_range, sticky, cooperative_sticky):
        found = assign(members, {"t": 6}, near)
        assert {name: sorted(places) for name, places in found.items()} == {"a": T[0::2], "b": T[1::2]}
    alone = {"a": Member(frozenset("t"), rack="x"), "b": Member(frozenset("t"), rack="x")}
    assert sizes(sticky(alone, {"t": 6}, near)) == [3, 3]


def test_ten_thousand_partitions_of_unlike_members_are_shared_out() -> None:
    counts = {f"t{number:03}": 100 for number in range(100)}
    names = sorted(counts)
    members = {f"m{at:02}": Member(frozenset(names[at:] + names[: at // 2])) for at in range(30)}
    first = sticky(members, counts)
    assert sum(sizes(first)) == 10_000
    again = {name: Member(member.topics, tuple(first[name]), 1) for name, member in members.items()}
    again["late"] = Member(frozenset(names))
    assert sizes(sticky(again, counts))[0] > 300


@given(OWNED, st.integers(-1, 2**31 - 1))
def test_user_data_come_back(owned: tuple[TopicPartition, ...], generation: int) -> None:
    found, found_generation = read_sticky(write_sticky(owned, generation))
    assert (sorted(found), found_generation) == (sorted(owned), generation)
    assert read_generation(write_generation(generation)) == generation


@given(st.binary(max_size=60))
def test_foreign_user_data_are_no_error(data: bytes) -> None:
    owned, _ = read_sticky(data)
    assert len(owned) <= len(data)
    read_generation(data)
