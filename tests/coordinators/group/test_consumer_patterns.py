"""Members of consumer groups that subscribe by a pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ixion.broker.coordinators.patterns import Pattern
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, beat_all, group_of, world_of
from tests.coordinators.group.kit import GROUP, World, whole


def count_turns(world: World) -> Callable[[], int]:
    begun = world.loop.turns
    return lambda: world.loop.turns - begun


def test_patterns_follow_the_topics() -> None:
    world = world_of()
    first = Client(world, "a", subscribed_topic_regex="t.*")
    assert first.join() is ErrorCode.NONE
    assert len(first.owned) == 6
    world.topics.put("t2", 2)
    first.beat()
    assert {name for name, _ in first.owned} == {"t", "t2"}
    first.beat(subscribed_topic_regex="", subscribed_topic_names=("u",))
    first.beat()
    assert {name for name, _ in first.owned} == {"u"}
    assert group_of(world).regexes == {}


def test_a_pattern_makes_an_epoch_when_it_matches_something_or_is_known_or_given_up() -> None:
    world = world_of()
    first, second = Client(world, "a", subscribed_topic_regex="n.*"), Client(world, "b", subscribed_topic_regex="n.*")
    first.join()
    assert first.epoch == 1, "it is new and matches nothing"
    second.join()
    assert second.epoch == 2, "it is known"
    second.beat(subscribed_topic_regex="")
    assert second.epoch == 3
    second.beat(subscribed_topic_regex="x.*")
    assert second.epoch == 3
    world.topics.put("new", 1)
    second.beat()
    assert (second.epoch, whole(world.groups.consumer.describe(GROUP)).group_epoch) == (4, 4)
    first.beat()
    assert first.owned == {("new", 0)}


def test_a_new_pattern_for_topics_that_others_read_already_makes_an_epoch() -> None:
    world = world_of()
    first, second = Client(world, "a", "t", "u"), Client(world, "b", subscribed_topic_regex="[tu]")
    first.join(), second.join()
    assert second.epoch == 3
    beat_all(first, second)
    assert (len(first.owned), len(second.owned)) == (4, 4)


def test_a_pattern_that_cannot_be_read_is_refused_and_changes_nothing() -> None:
    world = world_of()
    first = Client(world, "a", subscribed_topic_regex="(")
    assert first.join() is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert first.last is not None
    assert "(" in (first.last.error_message or "")
    assert whole(world.groups.admin.list((), ()))[1] == ()


def test_internal_topics_match_too() -> None:
    world = world_of()
    world.topics.put("__consumer_offsets", 2)
    first = Client(world, "a", subscribed_topic_regex="__consumer_.*")
    first.join()
    assert first.owned == {("__consumer_offsets", 0), ("__consumer_offsets", 1)}


DEAR = "((.?){30}){30}"  # milliseconds a name; it matches every name of the tests


def many_topics(world: World, count: int = 200) -> None:
    """Far more than DEAR matches in one turn: a name of 249 characters takes it milliseconds."""
    for number in range(count):
        world.topics.put(f"{number:x<249}", 1)


def test_a_dear_pattern_is_matched_in_turns_and_its_topics_come_later() -> None:
    world = world_of()
    many_topics(world)
    first = Client(world, "a", subscribed_topic_regex=DEAR)
    turns = count_turns(world)
    assert first.join() is ErrorCode.NONE
    assert turns() > 5
    world.advance(10)
    beat_all(first)
    assert len(first.owned) == 200 + 8
    other = Client(world, "b", subscribed_topic_regex="t")
    other.join()
    assert group_of(world).regexes["t"] == {"t"}


def test_a_cheap_pattern_does_not_wait_for_dear_ones() -> None:
    world = world_of()
    many_topics(world)
    matches = world.groups.consumer._engine._matches
    assert [matches.find(f"{DEAR}{dot}", GROUP) for dot in (".?", ".*", ".{0,1}")] == [None] * 3
    cheap = 0
    matches.find("t", GROUP)
    while matches.find("t", GROUP) is None:
        world.loop.step()
        cheap += 1
    dear = 0
    while any(matches.find(f"{DEAR}{dot}", GROUP) is None for dot in (".?", ".*", ".{0,1}")):
        world.loop.step()
        dear += 1
    assert cheap < dear


def test_only_topics_that_are_new_are_matched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = Pattern.matches

    def counted(pattern: Pattern, name: str) -> bool:
        looked.append(name)
        return real(pattern, name)

    monkeypatch.setattr(Pattern, "matches", counted)
    world = world_of()
    first = Client(world, "a", subscribed_topic_regex="t.*")
    first.join()
    assert sorted(looked) == ["t", "u"]
    world.topics.put("t2", 2)
    world.topics.remove("u")
    first.beat()
    assert looked[2:] == ["t2"]
    assert {name for name, _ in first.owned} == {"t", "t2"}
    Client(world, "b", subscribed_topic_regex="t.*").join()
    assert looked[3:] == [], "members share what was found"


def test_what_is_remembered_of_patterns_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ixion.broker.coordinators.group.consumer.matches.MOST_NAMES", 1_000)
    world = world_of()
    for number in range(100):
        world.topics.put(f"topic-{number}", 1)
    matches = world.groups.consumer._engine._matches
    for number in range(300):
        matches.find(f"topic-[0-9]{{1,{number + 3}}}", GROUP)
        world.run()
        assert matches._names <= 1_000
        assert len(matches._known) <= 100
    monkeypatch.setattr("ixion.broker.coordinators.group.consumer.matches.MOST_NAMES", 10**9)
    for number in range(300):
        matches.find(f"topic-[0-9]{{2,{number + 3}}}", GROUP)
        world.run()
    assert len(matches._known) == 100


def test_topics_that_match_count_as_memory_of_the_group() -> None:
    world = world_of()
    for number in range(1_000):
        world.topics.put(f"topic-{number}", 1)
    bounds = world.groups.rebalance.bounds
    first = Client(world, "a", "t")
    first.join()
    before = bounds.held_bytes
    assert first.beat(subscribed_topic_regex=".*") is ErrorCode.NONE
    world.run()
    first.beat()
    assert bounds.held_bytes > before + 1_000 * 100
    bounds.most_bytes = bounds.held_bytes - 1
    assert Client(world, "b", "t").join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert first.beat(subscribed_topic_regex=".+") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert first.beat() is ErrorCode.NONE
    world.groups.on_resigned(0)
    assert bounds.held_bytes == 0


def test_a_pattern_in_the_log_that_cannot_be_read_matches_nothing() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    group = group_of(world)
    member = group.members["a"]
    group.put(member, replace(member.subscription, regex="("))
    world.topics.put("v", 1)
    assert first.beat() is ErrorCode.NONE
    assert group.regexes == {"(": frozenset()}
