"""Where replicas go: what may stay stays, the rest is spread evenly and over racks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.cli.cluster.plan import spread
from ixion.cli.command import UsageError
from ixion.clients.metadata import TopicPartition


def places(*replicas: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", number): each for number, each in enumerate(replicas)}


def numbered(plan: dict[TopicPartition, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {place.partition: after for place, after in plan.items()}


def test_a_drained_broker_is_replaced_where_it_was() -> None:
    now = places((1, 3), (3, 2), (1, 2))
    plan = spread(now, [place for place, each in now.items() if 3 in each], {1: None, 2: None, 4: None})
    assert numbered(plan) == {0: (1, 4), 1: (4, 2)}


def test_other_racks_come_first() -> None:
    now = places((1, 9))
    assert numbered(spread(now, list(now), {1: "a", 2: "a", 3: "b"})) == {0: (1, 3)}


def test_more_and_fewer_replicas() -> None:
    now = places((1,), (2,), (3,))
    racks = dict.fromkeys((1, 2, 3), None)
    assert {len(each) for each in spread(now, list(now), racks, 2).values()} == {2}
    now = places((1, 2, 3))
    assert numbered(spread(now, list(now), racks, 1)) == {0: (1,)}
    assert spread(now, list(now), racks) == {}


def test_too_few_brokers_are_refused() -> None:
    now = places((1, 2, 3))
    with pytest.raises(UsageError, match="t-0 has 3 replicas, but 2 brokers are left for it"):
        spread(now, list(now), {1: None, 2: None})


@given(st.data())
def test_every_plan_keeps_what_may_stay(data: st.DataObject) -> None:
    brokers = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True))
    assigned = st.lists(st.sampled_from(range(10)), min_size=1, max_size=len(brokers), unique=True).map(tuple)
    now = places(*data.draw(st.lists(assigned, min_size=1, max_size=12)))
    racks = {broker: data.draw(st.sampled_from([None, "a", "b"])) for broker in brokers}
    plan = spread(now, list(now), racks)
    for place, before in now.items():
        after = plan.get(place, before)
        assert set(after) <= set(brokers)
        assert len(set(after)) == len(after) == len(before)
        assert set(before) & set(brokers) <= set(after)
        assert place not in plan or after != before
