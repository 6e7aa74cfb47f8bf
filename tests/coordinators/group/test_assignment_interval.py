"""group.consumer.assignment.interval.ms: an assignment is in force for some time before the next one (KIP-1263)."""

from __future__ import annotations

from ixion.broker.coordinators.group.consumer.assignment import count
from ixion.broker.coordinators.group.consumer.limits import GroupLimits
from ixion.config.dynamic import DynamicConfig, Level
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, beat_all, numbers
from tests.coordinators.group.eager_kit import EagerClient
from tests.coordinators.group.kit import GROUP, MemoryTopics, World

INTERVAL_MS = 1_000


def world_of(interval_ms: int = INTERVAL_MS) -> World:
    return World(topics=MemoryTopics(t=6, u=2), group_consumer_assignment_interval_ms=interval_ms)


def epochs(world: World) -> tuple[int, int]:
    return world.group.epoch, world.group.assignment_epoch


def test_a_member_that_joins_too_soon_waits_for_the_next_assignment() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    assert (first.epoch, numbers(first)) == (2, [0, 1, 2, 3, 4, 5]), "the first assignment is made at once"
    world.advance(INTERVAL_MS - 1)
    assert second.join() is ErrorCode.NONE
    assert (second.epoch, numbers(second), world.state, epochs(world)) == (2, [], "Assigning", (3, 2))
    first.beat()
    assert (first.epoch, len(first.owned)) == (2, 6)
    world.advance(1)
    assert epochs(world) == (3, 2), "it is made when a member is heard of"
    beat_all(second, first, rounds=3)
    assert (epochs(world), world.state) == ((3, 3), "Stable")
    assert (numbers(first), numbers(second)) == ([0, 1, 2], [3, 4, 5])


def test_many_changes_are_one_assignment() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    others = [Client(world, f"b{number}", "t") for number in range(5)]
    for other in others:
        other.join()
    world.topics.put("t", 12)
    first.beat()
    others.pop().leave()
    assert epochs(world) == (9, 2)
    world.advance(INTERVAL_MS)
    first.beat()
    assert epochs(world) == (9, 9)
    assert [len(target) for (target,) in (each.values() for each in world.group.targets.values())] == [3, 3, 2, 2, 2]


def test_of_topics_it_does_not_read_any_more_a_member_has_nothing_though_the_assignment_is_old() -> None:
    world = world_of()
    client = Client(world, "a", "t", "u")
    client.join()
    client.beat(subscribed_topic_names=("u",))
    assert ({name for name, _ in client.owned}, client.epoch) == ({"u"}, 2)
    assert len(world.group.members["a"].current.revoking) == 1, "t is its own until it says that it has let go"
    client.beat()
    assert (client.epoch, world.group.members["a"].current.revoking) == (2, {})
    client.beat(subscribed_topic_names=("t", "u"))
    assert {name for name, _ in client.owned} == {"u"}, "it has t again with the next assignment"
    client.beat(subscribed_topic_names=("u",))
    other = Client(world, "b", "t")
    world.advance(INTERVAL_MS)
    other.join()
    assert (len(other.owned), other.epoch) == (6, 6)


def test_a_revoking_member_that_subscribes_to_less_revokes_more_and_gets_its_time_for_that() -> None:
    world = world_of()
    first, second = Client(world, "a", "t", "u", rebalance_timeout_ms=20_000), Client(world, "b", "t", "u")
    first.join()
    world.advance(INTERVAL_MS)
    second.join()
    first.clings = True
    first.beat()
    asked = world.group.members["a"].current
    assert (count(asked.assigned), count(asked.revoking)) == (4, 4)
    world.advance(15_000)
    first.beat(subscribed_topic_names=("u",))
    asked = world.group.members["a"].current
    assert (count(asked.assigned), count(asked.revoking)) == (0, 8), "of u it was asked for all before"
    world.advance(15_000)
    assert first.beat() is ErrorCode.NONE, "it was asked for more, 15 seconds ago"
    world.advance(5_000)
    assert first.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_restart_does_not_begin_the_interval_anew_nor_end_it() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    world.advance(600)
    later = world.restart(group_consumer_assignment_interval_ms=INTERVAL_MS)
    first.world = second.world = later
    second.join()
    assert epochs(later) == (3, 2)
    later.advance(400)
    second.beat()
    assert epochs(later) == (3, 3)


def test_a_clock_that_is_set_back_delays_no_epoch() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    later = World(world.log, world.topics, start_ms=world.clock.now_ms - 500_000)
    second = Client(later, "b", "t")
    second.join()
    assert epochs(later) == (3, 3)


def test_the_interval_can_be_changed_at_any_time() -> None:
    world = world_of(0)
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    world.config.change(Level.ALL_BROKERS, {"group.consumer.assignment.interval.ms": "5000"})
    second.join()
    assert epochs(world) == (3, 2)
    world.config.change(Level.ALL_BROKERS, {})
    second.beat()
    assert epochs(world) == (3, 3)


def test_a_group_has_its_own_within_the_limits_of_all() -> None:
    own = {"quick": {"consumer.assignment.interval.ms": "10"}, "slow": {"consumer.assignment.interval.ms": "99999"}}
    limits = GroupLimits(DynamicConfig({}), lambda group_id: own.get(group_id, {}))
    assert limits.assignment_interval_ms(GROUP) == 1_000
    assert limits.assignment_interval_ms("quick") == 10
    assert limits.assignment_interval_ms("slow") == 15_000


def test_a_classic_member_is_not_sent_to_join_before_there_is_something_to_get() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    classic = EagerClient(world, "e", "t")
    for _ in range(3):
        classic.beat()
    assert (world.state, classic.is_stable, classic.owned) == ("Assigning", True, set())
    assert world.heartbeat(classic.member_id, 2) is ErrorCode.NONE
    world.advance(INTERVAL_MS)
    assert world.heartbeat(classic.member_id, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(8):
        classic.beat()
        first.beat()
    assert (len(first.owned), len(classic.owned), world.state) == (3, 3, "Stable")


def test_classic_members_alone_get_on_without_others() -> None:
    """Nobody of the consumer protocol is left to compute their targets, and the group may not become a classic one."""
    world = World(
        topics=MemoryTopics(t=6),
        group_consumer_assignment_interval_ms=INTERVAL_MS,
        group_consumer_migration_policy="upgrade",
    )
    first = Client(world, "a", "t")
    first.join()
    classic = EagerClient(world, "e", "t")
    classic.beat()
    first.leave()
    world.advance(INTERVAL_MS)
    for _ in range(8):
        classic.beat()
    assert (len(classic.owned), world.state) == (6, "Stable")


def test_a_group_that_changes_its_protocol_gets_new_targets_at_once() -> None:
    world = world_of()
    classic = EagerClient(world, "e", "t")
    for _ in range(4):
        classic.beat()
        world.advance(5)
    first = Client(world, "a", "t")
    first.join()
    group, assignment = epochs(world)
    assert group == assignment
