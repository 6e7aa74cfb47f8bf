"""Members of consumer groups that subscribe by a pattern."""

from __future__ import annotations

from ixion.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, beat_all, group_of, world_of
from tests.coordinators.group.kit import GROUP, whole


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
    assert (second.epoch, whole(world.groups.consumers.describe(GROUP)).group_epoch) == (4, 4)
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
