"""The two ways to share out partitions, compared with confluent's examples and checked for what must always hold."""

from __future__ import annotations

import random

import pytest

from ixion.clients.assignors import ASSIGNORS, by_range, round_robin
from ixion.clients.metadata import TopicPartition


def numbers(assignment: dict[str, list[TopicPartition]]) -> dict[str, list[str]]:
    return {member: [f"{place.topic}{place.partition}" for place in places] for member, places in assignment.items()}


def test_range_and_round_robin() -> None:
    both = {"a": frozenset("tu"), "b": frozenset("tu")}
    assert numbers(by_range(both, {"t": 3, "u": 3})) == {"a": ["t0", "t1", "u0", "u1"], "b": ["t2", "u2"]}
    assert numbers(round_robin(both, {"t": 3, "u": 3})) == {"a": ["t0", "t2", "u1"], "b": ["t1", "u0", "u2"]}
    mixed = {"a": frozenset("t"), "b": frozenset("tu"), "c": frozenset("tuv")}
    counts = {"t": 1, "u": 2, "v": 3}
    assert numbers(round_robin(mixed, counts)) == {"a": ["t0"], "b": ["u0"], "c": ["u1", "v0", "v1", "v2"]}


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(30))
def test_every_partition_goes_to_one_subscriber(name: str, seed: int) -> None:
    choose = random.Random(seed)
    counts = {f"t{number}": choose.randrange(6) for number in range(4)}
    subscriptions = {
        f"m{number}": frozenset(choose.sample([*counts, "gone"], choose.randrange(4))) for number in range(5)
    }
    assignment = ASSIGNORS[name](subscriptions, counts)
    assert assignment.keys() == subscriptions.keys()
    given = [place for places in assignment.values() for place in places]
    wanted = {topic for topics in subscriptions.values() for topic in topics}
    assert sorted(given) == [
        TopicPartition(topic, number) for topic in sorted(counts) if topic in wanted for number in range(counts[topic])
    ]
    for member, places in assignment.items():
        assert {place.topic for place in places} <= subscriptions[member]
