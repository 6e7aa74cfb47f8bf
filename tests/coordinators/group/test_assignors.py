"""Which member gets which partitions."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ixion.broker.coordinators.group.consumer.assignment import Assignment, count, overlap
from ixion.broker.coordinators.group.consumer.assignors import ASSIGNORS
from ixion.broker.coordinators.group.consumer.assignors.range import assign_range
from ixion.broker.coordinators.group.consumer.assignors.spec import Spec, Subscriber
from ixion.broker.coordinators.group.consumer.assignors.uniform import assign_uniform
from ixion.timer.turns import finish

T, U = b"t" * 16, b"u" * 16


def ranged(wanted: Spec) -> dict[str, Assignment]:
    return finish(assign_range(wanted))


def uniform(wanted: Spec) -> dict[str, Assignment]:
    return finish(assign_uniform(wanted))


def spec(partitions: dict[bytes, int], **readers: Subscriber) -> Spec:
    return Spec(readers=readers, partitions=partitions)


def test_ranges_are_cut_alike_for_topics_of_the_same_size() -> None:
    both = frozenset({T, U})
    shares = ranged(spec({T: 7, U: 7}, a=Subscriber(topics=both), b=Subscriber(topics=both), c=Subscriber(topics=both)))
    assert shares["a"] == {T: frozenset({0, 1, 2}), U: frozenset({0, 1, 2})}
    assert shares["b"] == {T: frozenset({3, 4}), U: frozenset({3, 4})}
    assert shares["c"] == {T: frozenset({5, 6}), U: frozenset({5, 6})}


def test_those_with_an_instance_come_first() -> None:
    one = frozenset([T])
    shares = ranged(spec({T: 3}, a=Subscriber(topics=one), z=Subscriber(topics=one, instance_id="i")))
    assert shares == {"z": {T: frozenset([0, 1])}, "a": {T: frozenset([2])}}


def test_ranges_go_by_instance_not_by_member_id() -> None:
    one = frozenset({T})
    before = ranged(
        spec({T: 4}, z=Subscriber(topics=one, instance_id="i1"), y=Subscriber(topics=one, instance_id="i2"))
    )
    after = ranged(spec({T: 4}, a=Subscriber(topics=one, instance_id="i2"), z=Subscriber(topics=one, instance_id="i1")))
    assert (before["z"], before["y"]) == (after["z"], after["a"]) == ({T: frozenset({0, 1})}, {T: frozenset({2, 3})})


def test_uniform_moves_no_more_than_it_must() -> None:
    one = frozenset({T})
    old = {"a": {T: frozenset({0, 1, 2})}, "b": {T: frozenset({3, 4, 5})}}
    shares = uniform(
        spec(
            {T: 6},
            a=Subscriber(topics=one, before=old["a"]),
            b=Subscriber(topics=one, before=old["b"]),
            c=Subscriber(topics=one),
        )
    )
    assert [count(share) for share in shares.values()] == [2, 2, 2]
    assert count(overlap(shares["a"], old["a"])) == count(overlap(shares["b"], old["b"])) == 2


def test_members_beyond_the_partitions_get_nothing() -> None:
    one = frozenset({T})
    shares = uniform(spec({T: 1}, a=Subscriber(topics=one), b=Subscriber(topics=one)))
    assert sorted(count(share) for share in shares.values()) == [0, 1]


def test_subscriptions_may_differ() -> None:
    shares = uniform(spec({T: 4, U: 4}, a=Subscriber(topics=frozenset({T, U})), b=Subscriber(topics=frozenset({T}))))
    assert shares["a"].get(U) == frozenset({0, 1, 2, 3})
    assert shares["b"].get(T) == frozenset({0, 1, 2, 3})


def test_a_crowd_of_different_tastes_is_balanced_in_no_time() -> None:
    """Of ten thousand half read one topic and half both, and one has had everything: not to be done pair by pair."""
    both, one = frozenset({T, U}), frozenset({T})
    readers = {f"{number:05}": Subscriber(topics=both if number % 2 else one) for number in range(10_000)}
    greedy = Subscriber(topics=both, before={T: frozenset(range(6_000)), U: frozenset(range(6_000))})
    shares = uniform(Spec(readers={**readers, "00001": greedy}, partitions={T: 6_000, U: 6_000}))
    assert Counter(count(share) for share in shares.values()) == {1: 8_000, 2: 2_000}


topics = st.sampled_from([T, U, b"v" * 16])


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    partitions = draw(st.dictionaries(topics, st.integers(1, 12)))
    names = draw(st.lists(st.sampled_from("abcdefg"), unique=True))
    free = {(topic, number) for topic, size in partitions.items() for number in range(size)}
    readers = {}
    alike = draw(st.booleans())
    wanted = draw(st.frozensets(topics))
    for name in names:
        had = draw(st.sets(st.sampled_from(sorted(free)))) if free else set()
        free -= had
        before: dict[bytes, frozenset[int]] = {}
        for topic, number in had:
            before[topic] = before.get(topic, frozenset()) | {number}
        reads = wanted if alike else draw(st.frozensets(topics))
        readers[name] = Subscriber(topics=frozenset(reads & partitions.keys()), before=before)
    return Spec(readers=readers, partitions=partitions)


def owners(shares: dict[str, Assignment]) -> Counter[tuple[bytes, int]]:
    return Counter((topic, number) for share in shares.values() for topic, part in share.items() for number in part)


@given(specs(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_that_has_readers_has_one_of_them(given_spec: Spec, name: str) -> None:
    shares = finish(ASSIGNORS[name](given_spec))
    assert shares.keys() == given_spec.readers.keys()
    for member_id, share in shares.items():
        assert share.keys() <= given_spec.readers[member_id].topics
    read = {topic for reader in given_spec.readers.values() for topic in reader.topics}
    wanted = {(topic, number) for topic in read for number in range(given_spec.partitions[topic])}
    assert owners(shares) == Counter(wanted)


@given(specs())
def test_uniform_is_even_where_it_can_be_and_stays_so(given_spec: Spec) -> None:
    shares = uniform(given_spec)
    for giver, share in shares.items():
        for taker in shares:
            could = any(topic in given_spec.readers[taker].topics for topic in share)
            assert not could or count(share) - count(shares[taker]) <= 1, (giver, taker)
    again = Spec(
        readers={
            name: Subscriber(topics=reader.topics, before=shares[name]) for name, reader in given_spec.readers.items()
        },
        partitions=given_spec.partitions,
    )
    assert uniform(again) == shares
