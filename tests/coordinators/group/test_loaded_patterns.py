"""Members with a pattern that were loaded from the log: the rights of their clients come with the next heartbeat."""

from __future__ import annotations

from ixion.broker.acl.authorizer import Authorizer
from ixion.language.model.acl_binding import Entry, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, beat_all, group_of, name_of, world_of
from tests.coordinators.group.kit import World


def guard(*clients: Client, topics: dict[str, tuple[str, ...]]) -> Authorizer:
    """Give each client its own principal, which may describe its `topics`."""
    authorizer = Authorizer([], False, lambda: 0)
    for client in clients:
        allow(authorizer, client.member_id, *topics[client.member_id])
        client.rights = authorizer.rights_of(f"User:{client.member_id}", "127.0.0.1")
    return authorizer


def allow(authorizer: Authorizer, user: str, *topics: str) -> None:
    rules = authorizer.rules
    for name in topics:
        resource = ResourcePattern(ResourceKind.TOPIC, name, PatternKind.LITERAL)
        entry = Entry(f"User:{user}", "*", Operation.DESCRIBE, Permission.ALLOW)
        rules.put(resource, (*rules.resources.get(resource, ()), entry))


def target_of(world: World, member_id: str) -> set[str]:
    return {name_of(world, topic_id) for topic_id in group_of(world).target(member_id)}


def restarted(*clients: Client) -> World:
    later = clients[0].world.restart()
    for client in clients:
        client.world = later
    return later


def two_members(**topics: tuple[str, ...]) -> tuple[World, Client, Client, Authorizer]:
    world = world_of()
    first, second = (Client(world, each, subscribed_topic_regex=".*") for each in ("a", "b"))
    authorizer = guard(first, second, topics=topics)
    first.join(), second.join()
    beat_all(first, second)
    return world, first, second, authorizer


def test_a_loaded_member_gets_no_topic_that_its_client_may_not_describe() -> None:
    _, first, second, _ = two_members(a=("t", "u", "secret"), b=("t",))
    world = restarted(first, second)
    world.topics.put("secret", 4)
    assert first.beat() is ErrorCode.NONE
    assert target_of(world, "b") == {"t"}, "neither u, which matches its pattern in the log, nor the new topic"
    beat_all(first, second)
    assert {name for name, _ in second.owned} == {"t"}
    assert {("secret", number) for number in range(4)} | {("u", 0), ("u", 1)} <= first.owned


def test_a_loaded_member_gets_new_topics_with_its_next_heartbeat() -> None:
    _, first, second, _ = two_members(a=("t", "u", "new"), b=("t", "new"))
    world = restarted(first, second)
    world.topics.put("new", 20)
    first.beat()
    assert target_of(world, "b") == {"t"}
    beat_all(first, second)
    assert target_of(world, "b") == {"t", "new"}
    assert {name for name, _ in second.owned} == {"t", "new"}


def test_a_load_alone_starts_no_epoch() -> None:
    world, first, second, _ = two_members(a=("t", "u"), b=("t",))
    epoch = group_of(world).epoch
    world = restarted(first, second)
    beat_all(first, second)
    assert group_of(world).epoch == epoch


def test_without_an_authorizer_loaded_members_get_new_topics_at_once() -> None:
    world = world_of()
    first, second = (Client(world, each, subscribed_topic_regex=".*") for each in ("a", "b"))
    first.join(), second.join()
    beat_all(first, second)
    world = restarted(first, second)
    world.topics.put("new", 4)
    first.beat()
    assert target_of(world, "b") == {"t", "u", "new"}
