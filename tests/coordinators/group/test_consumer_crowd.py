"""Consumer groups of very many members: how often targets are computed, what is written at once, what is held."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.broker.coordinators.group.bounds import MOST_TOPICS
from ixion.broker.coordinators.group.consumer import targets
from ixion.broker.coordinators.group.consumer.demand import BYTES_PER_GROUP, BYTES_PER_MEMBER, Demand, bytes_of
from ixion.broker.coordinators.group.consumer.member import Subscription
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, beat_all, group_of, numbers
from tests.coordinators.group.kit import GROUP, MemoryLog, MemoryTopics, World, subscription, whole
from tests.timer.test_turns import Ticking

MB = 1_000_000


def crowd(world: World, count: int, prefix: str = "m", **fields: Any) -> list[Client]:
    """All of them join in the same millisecond."""
    clients = [Client(world, f"{prefix}{number:04}", "t", **fields) for number in range(count)]
    for client in clients:
        assert client.join() is ErrorCode.NONE
    return clients


def test_targets_of_a_small_group_are_computed_at_once() -> None:
    world = World(topics=MemoryTopics(t=9))
    crowd(world, 9)
    assert (group_of(world).assignment_epoch, group_of(world).epoch) == (10, 10)


def test_targets_of_a_crowd_are_computed_once_for_many() -> None:
    world = World(topics=MemoryTopics(t=400))
    clients = crowd(world, 200)
    group = group_of(world)
    assert (group.assignment_epoch, group.epoch) == (10, 201), "nine at once, the others have to wait"
    assert (clients[-1].epoch, numbers(clients[-1])) == (10, []), "a member all the same"
    world.advance(19)
    clients[-1].beat()
    assert group.assignment_epoch == 10
    world.advance(1)
    clients[-1].beat()
    assert (group.assignment_epoch, clients[-1].epoch) == (201, 201)
    beat_all(*clients)
    assert {len(client.owned) for client in clients} == {2}
    assert len(set().union(*(client.owned for client in clients))) == 400
    assert world.state == "Stable"


def test_a_crowd_that_leaves_costs_one_computation() -> None:
    world = World(topics=MemoryTopics(t=400))
    clients = crowd(world, 100)
    world.advance(10)
    beat_all(*clients)
    for client in clients[1:]:
        assert client.leave() is ErrorCode.NONE
    epoch = group_of(world).assignment_epoch
    clients[0].beat()
    assert (epoch, clients[0].epoch, len(clients[0].owned)) == (101, 200, 400)


def test_a_crowd_that_is_read_from_the_log_goes_on() -> None:
    world = World(topics=MemoryTopics(t=60))
    clients = crowd(world, 60)
    again = world.restart()
    for client in clients:
        client.world = again
    again.advance(6)
    beat_all(*clients)
    assert {len(client.owned) for client in clients} == {1}
    assert again.state == "Stable"


def state_of(world: World) -> object:
    """All that the log must know of the group."""
    group = group_of(world)
    members = {each.member_id: (each.subscription, each.current) for each in group.members.values()}
    return group.epoch, group.assignment_epoch, members, dict(group.targets)


class InTurns:
    """A world whose targets are all computed in turns, with a loop that a test moves a step at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
        Ticking(monkeypatch)
        monkeypatch.setattr(targets, "AT_ONCE", 0)
        self.world = World(topics=MemoryTopics(t=partitions))
        self._monkeypatch = monkeypatch

    def hold(self) -> None:
        self._monkeypatch.setattr(self.world, "run", lambda: None)

    def go_on(self) -> int:
        """How many turns that took."""
        before = self.world.loop.turns
        self._monkeypatch.delattr(self.world, "run")
        self.world.run()
        return self.world.loop.turns - before


def test_targets_of_a_large_group_are_computed_in_turns_while_members_come_and_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = InTurns(monkeypatch, 60)
    world = stage.world
    clients = crowd(world, 30)
    world.advance(10)
    beat_all(*clients)
    assert {len(client.owned) for client in clients} == {2}
    world.topics.put("t", 93)
    world.advance(10)
    group = group_of(world)
    stage.hold()
    clients[0].beat()
    world.loop.step()
    epoch = group.epoch
    assert (group.is_computing, group.assignment_epoch) == (True, epoch - 1)
    assert clients[3].leave() is ErrorCode.NONE
    late = Client(world, "late", "t")
    assert late.join() is ErrorCode.NONE
    assert stage.go_on() > 20
    assert not group.is_computing
    assert (group.assignment_epoch, group.epoch > epoch) == (epoch, True)
    assert group.targets.keys() == {client.member_id for client in clients} - {"m0003"}
    before = state_of(world)
    assert state_of(world.restart()) == before


def test_a_large_group_settles_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = InTurns(monkeypatch, 60)
    world = stage.world
    clients = crowd(world, 30)
    stage.hold()
    world.clock.advance(10)
    clients[0].beat()
    assert clients.pop().leave() is ErrorCode.NONE
    stage.go_on()
    for _ in range(3):
        world.advance(10)
        beat_all(*clients)
    assert sum(len(client.owned) for client in clients) == len(set().union(*(client.owned for client in clients))) == 60
    assert world.state == "Stable"


def test_a_static_member_that_returns_while_targets_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the target of its old id, which may overlap with the new ones: they are computed once more."""
    stage = InTurns(monkeypatch, 60)
    world = stage.world
    static = Client(world, "s", "t", instance_id="i")
    static.join()
    clients = crowd(world, 29)
    world.advance(10)
    beat_all(static, *clients)
    world.topics.put("t", 90)
    world.advance(10)
    stage.hold()
    clients[0].beat()
    world.loop.step()
    assert static.leave(epoch=-2) is ErrorCode.NONE
    back = Client(world, "z", "t", instance_id="i")
    assert back.join() is ErrorCode.NONE
    stage.go_on()
    group = group_of(world)
    assert group.epoch > group.assignment_epoch
    for _ in range(3):
        world.advance(10)
        beat_all(back, *clients)
    everybody = [back, *clients]
    assert {len(client.owned) for client in everybody} == {3}
    assert len(set().union(*(client.owned for client in everybody))) == 90
    before = state_of(world)
    assert state_of(world.restart()) == before


@pytest.mark.parametrize("partitions", [60, 90], ids=["same target", "another target"])
@pytest.mark.parametrize("at", [1, 10, 20], ids=["early", "midway", "late"])
def test_a_member_that_leaves_and_returns_while_targets_are_computed(
    monkeypatch: pytest.MonkeyPatch, partitions: int, at: int
) -> None:
    stage = InTurns(monkeypatch, 60)
    world = stage.world
    clients = crowd(world, 30)
    world.advance(10)
    beat_all(*clients)
    world.advance(10)
    stage.hold()
    world.topics.put("t", partitions)
    if partitions == 60:
        assert Client(world, "another", "t").join() is ErrorCode.NONE
    else:
        clients[0].beat()
    for _ in range(at):
        world.loop.step()
    assert group_of(world).is_computing
    for client in (clients[5], clients[29]):
        assert client.leave() is ErrorCode.NONE
    assert clients[5].join() is ErrorCode.NONE
    stage.go_on()
    group = group_of(world)
    assert not group.is_computing
    assert group.targets.keys() <= group.members.keys()
    assert group.epoch > group.assignment_epoch
    before = state_of(world)
    assert state_of(world.restart()) == before


def test_a_group_that_is_gone_has_no_targets_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = InTurns(monkeypatch, 60)
    world = stage.world
    clients = crowd(world, 30)
    stage.hold()
    world.clock.advance(10)
    clients[0].beat()
    group = group_of(world)
    world.groups.on_resigned(0)
    written = world.log.next_offset
    stage.go_on()
    assert (group.dead, world.log.next_offset) == (True, written)


def test_targets_that_cannot_be_stored_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = InTurns(monkeypatch, 60)
    world = stage.world
    clients = crowd(world, 30)
    stage.hold()
    world.clock.advance(10)
    clients[0].beat()
    group = group_of(world)
    epoch = group.assignment_epoch
    world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
    stage.go_on()
    assert group.dead
    assert group_of(world).assignment_epoch == epoch
    world.advance(10)
    beat_all(*clients)
    assert sum(len(client.owned) for client in clients) == 60


def test_a_large_change_is_there_as_a_whole_or_not_at_all() -> None:
    """Wherever the log ends after a crash, the group is as it was after one of its changes."""
    world = World(topics=MemoryTopics(t=1))
    clients = crowd(world, 60, prefix="x" * 20_000)
    world.advance(10)
    clients[0].beat()
    known = len(world.log.batches)
    before = state_of(world)
    world.topics.put("t", 60)
    world.advance(10)
    clients[0].beat()
    after = state_of(world)
    assert sum(len(batch) for batch in world.log.batches[known:]) > MB
    for end in range(known, len(world.log.batches) + 1):
        log = MemoryLog()
        for batch in world.log.batches[:end]:
            log.write(batch)
        found = state_of(World(log, world.topics))
        assert found == (before if end == known else after)
    assert len(world.log.batches) == known + 1


def test_a_subscription_that_no_record_can_hold_is_refused_before_anything_is_changed() -> None:
    world = World(topics=MemoryTopics(t=1), message_max_bytes=MB)
    names = tuple(f"{number:0>100}" for number in range(10_000))
    client = Client(world, "a", *names)
    assert client.join() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert client.last is not None
    assert client.last.error_message == "a subscription of 1020026 bytes does not fit into a record of 1000000"
    assert (world.log.next_offset, whole(world.groups.admin.list((), ()))[1]) == (0, ())
    client.topics = names[:9_000]
    assert client.join() is ErrorCode.NONE
    before = world.log.next_offset
    assert client.beat(subscribed_topic_names=names) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (world.log.next_offset, len(group_of(world).members["a"].subscription.topics)) == (before, 9_000)


def test_a_member_may_name_so_many_topics_and_no_more() -> None:
    world = World(topics=MemoryTopics(t=1))
    names = ("t", *(f"{number:05}" for number in range(MOST_TOPICS)))
    client = Client(world, "a", *names)
    assert client.join() is ErrorCode.INVALID_REQUEST
    assert client.last is not None
    assert client.last.error_message == ("a member may name 20000 topics, not 20001; a pattern may match any number")
    assert world.log.next_offset == 0
    client.topics = names[:-1]
    assert client.join() is ErrorCode.NONE
    assert client.owned == {("t", 0)}
    classic = world.join(protocols={"range": subscription(*names)})
    assert classic.code is ErrorCode.INVALID_REQUEST
    assert world.join(protocols={"range": subscription(*names[:-1])}).code is ErrorCode.NONE


def held(world: World) -> int:
    return world.groups.rebalance.bounds.held_bytes


def test_what_consumer_groups_hold_is_bounded() -> None:
    world = World(topics=MemoryTopics(t=1))
    clients = [Client(world, f"m{number}", f"{number:0>900}") for number in range(8)]
    clients[0].join()
    with_one = held(world)
    clients[1].join()
    one_more = held(world) - with_one
    assert one_more > 900 + BYTES_PER_MEMBER
    world.groups.rebalance.bounds.most_bytes = full = with_one + 4 * one_more
    codes = [client.join() for client in clients[2:]]
    assert codes == [ErrorCode.NONE] * 3 + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert (held(world), len(group_of(world).members)) == (full, 5)
    assert clients[0].beat(subscribed_topic_names=("x" * 900,)) is ErrorCode.NONE, "no more than before"
    assert clients[0].beat(subscribed_topic_names=("x" * 901,)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert clients[0].beat() is ErrorCode.NONE, "it goes on as it was"
    clients[1].leave()
    assert clients[5].join() is ErrorCode.NONE
    again = world.restart()
    assert held(again) == full
    again.advance(46_000)
    assert held(again) == with_one - one_more, "their sessions have ended; there is still a group"


@pytest.mark.parametrize("field", ["instance_id", "rack_id", "subscribed_topic_regex"])
def test_whatever_a_member_says_counts_and_must_fit_into_a_record(field: str) -> None:
    world = World(topics=MemoryTopics(t=1), message_max_bytes=MB)
    client = Client(world, "a", "t")
    client.join()
    before = held(world)
    said: dict[str, Any] = {field: "x" * 800}
    if field == "instance_id":
        client = Client(world, "b", "t")
        assert client.join(**said) is ErrorCode.NONE
    else:
        assert client.beat(**said) is ErrorCode.NONE
    assert held(world) - before > 800
    world.groups.rebalance.bounds.most_bytes = held(world)
    said = {field: "x" * 801}
    assert Client(world, "c", "t").join(**said) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    said = {field: "y" * MB}
    if field != "subscribed_topic_regex":  # no expression may be that long
        assert Client(world, "c", "t").join(**said) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_names_count_by_what_they_take_whatever_they_are_made_of() -> None:
    narrow, wide = Subscription(topics=frozenset(["x" * 1_000])), Subscription(topics=frozenset(["🙂" * 1_000]))
    assert bytes_of("m", wide) - bytes_of("m", narrow) > 2_900
    assert bytes_of("m" * 1_000, narrow) - bytes_of("m", narrow) == 999


def test_groups_without_members_count_until_they_are_removed() -> None:
    world = World(topics=MemoryTopics(t=1))
    client = Client(world, "a", "t")
    client.join()
    client.leave()
    assert held(world) >= BYTES_PER_GROUP
    world.groups.expire_offsets()
    world.run()
    assert (held(world), whole(world.groups.admin.list((), ()))[1]) == (0, ())


def test_what_classic_members_of_a_consumer_group_offer_counts_too() -> None:
    world = World(topics=MemoryTopics(t=1), message_max_bytes=MB)
    Client(world, "a", "t").join()
    before = held(world)
    refused = world.join(client="old", version=3, protocols={"range": subscription("t"), "more": bytes(MB)})
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    taken = world.join(client="old", version=3, protocols={"range": subscription("t"), "more": bytes(MB // 2)})
    assert taken.code is ErrorCode.NONE
    assert held(world) - before > MB // 2


@pytest.mark.parametrize("leaves", [False, True])
def test_a_deleted_group_holds_nothing(leaves: bool) -> None:
    world = World(topics=MemoryTopics(t=1))
    client = Client(world, "a", "t")
    client.join()
    if leaves:
        client.leave()
    else:
        world.advance(46_000)
    done: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, done.append)
    assert (done, held(world)) == ([ErrorCode.NONE], 0)


def test_demand_is_what_the_members_want() -> None:
    world = World(topics=MemoryTopics(t=1, u=1))
    Client(world, "a", "t", "u").join()
    by_pattern = Client(world, "b", subscribed_topic_regex="u.*", server_assignor="range")
    by_pattern.join()
    demand = group_of(world).demand
    assert (demand.topics, demand.regexes) == ({"t": 1, "u": 1}, {"u.*": 1})
    assert demand.assignor(("uniform", "range")) == "range"
    by_pattern.leave()
    assert (demand.regexes, demand.assignor(("uniform", "range"))) == ({}, "uniform")
    (last,) = group_of(world).members.values()
    assert demand.held_bytes == bytes_of("a", last.subscription)
    assert Demand().assignor(("range", "uniform")) == "range"
