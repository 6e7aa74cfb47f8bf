"""The ways to share out partitions, by examples and by what must always hold."""

from __future__ import annotations

import random

import pytest

from ixion.clients.assignors import ASSIGNORS, Member, by_range, round_robin
from ixion.clients.metadata import TopicPartition


def numbers(assignment: dict[str, list[TopicPartition]]) -> dict[str, list[str]]:
    return {member: [f"{place.topic}{place.partition}" for place in places] for member, places in assignment.items()}


def test_range_and_round_robin() -> None:
    both = {"a": Member(frozenset("tu")), "b": Member(frozenset("tu"))}
    assert numbers(by_range(both, {"t": 3, "u": 3})) == {"a": ["t0", "t1", "u0", "u1"], "b": ["t2", "u2"]}
    assert numbers(round_robin(both, {"t": 3, "u": 3})) == {"a": ["t0", "t2", "u1"], "b": ["t1", "u0", "u2"]}
    mixed = {"a": Member(frozenset("t")), "b": Member(frozenset("tu")), "c": Member(frozenset("tuv"))}
    counts = {"t": 1, "u": 2, "v": 3}
    assert numbers(round_robin(mixed, counts)) == {"a": ["t0"], "b": ["u0"], "c": ["u1", "v0", "v1", "v2"]}


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(30))
def test_every_partition_goes_to_one_subscriber(name: str, seed: int) -> None:
    choose = random.Random(seed)
    counts = {f"t{number}": choose.randrange(6) for number in range(4)}
    members = {
        f"m{number}": Member(frozenset(choose.sample([*counts, "gone"], choose.randrange(4)))) for number in range(5)
    }
    assignment = ASSIGNORS[name](members, counts)
    assert assignment.keys() == members.keys()
    given = [place for places in assignment.values() for place in places]
    wanted = {topic for member in members.values() for topic in member.topics}
    assert sorted(given) == [
        TopicPartition(topic, number) for topic in sorted(counts) if topic in wanted for number in range(counts[topic])
    ]
    for member, places in assignment.items():
        assert {place.topic for place in places} <= members[member].topics


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    topics = frozenset("t")
    members = {"z": Member(topics, instance_id="1"), "a": Member(topics), "b": Member(topics, instance_id="2")}
    assert numbers(by_range(members, {"t": 3})) == {"z": ["t0"], "b": ["t1"], "a": ["t2"]}
    assert numbers(round_robin(members, {"t": 4})) == {"z": ["t0", "t3"], "b": ["t1"], "a": ["t2"]}
