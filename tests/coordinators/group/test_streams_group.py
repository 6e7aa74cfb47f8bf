"""Streams groups: delays, deadlines, restarts, long work, bounds."""

from __future__ import annotations

from typing import Any

from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.coordinators.group.stored_offsets import OffsetReader
from ixion.broker.coordinators.group.streams.records import topology_record
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.stored.record_types import RecordType
from tests.apis.streams_group_kit import subtopology, topic, topology
from tests.coordinators.group.kit import GROUP, Answer, MemoryTopics, World, whole
from tests.coordinators.group.streams_kit import Client, beat_all, group_of, world_of

DELAYED = {"group_streams_initial_rebalance_delay_ms": 500}


def test_the_first_members_wait_for_each_other() -> None:
    world = world_of(4, **DELAYED)
    a, b = Client(world, "a"), Client(world, "b")
    a.join()
    assert (a.active, a.statuses) == (set(), [5])
    assert a.last is not None
    assert a.last.heartbeat_interval_ms == 600, "when there are targets, not five seconds later"
    world.advance(300)
    b.join()
    world.advance(200)
    beat_all(a, b, rounds=1)
    assert (len(a.active), len(b.active)) == (4, 4)
    assert a.last.heartbeat_interval_ms == 5_000
    assert (a.statuses, world.state) == ([], "Stable")


def test_targets_are_in_force_for_the_interval() -> None:
    world = world_of(4, group_streams_assignment_interval_ms=1_000)
    a, b = Client(world, "a"), Client(world, "b")
    a.join()
    world.advance(300)
    b.join()
    assert world.state == "Assigning"
    assert b.last is not None
    assert b.last.heartbeat_interval_ms == 700
    world.advance(700)
    beat_all(a, b)
    assert (len(a.active), len(b.active), world.state) == (4, 4, "Stable")


def test_a_silent_member_is_removed() -> None:
    world = world_of()
    a, b = Client(world, "a"), Client(world, "b")
    a.join()
    b.join()
    beat_all(a, b)
    world.advance(40_000)
    a.beat()
    world.advance(10_000)
    assert list(group_of(world).members) == ["a"]
    beat_all(a)
    assert len(a.active) == 6


def test_a_member_that_does_not_revoke_is_removed() -> None:
    world = world_of()
    a, b = Client(world, "a"), Client(world, "b")
    a.join()
    a.clings = True
    b.join()
    for _ in range(4):
        world.advance(4_000)
        a.beat()
        b.beat()
    assert list(group_of(world).members) == ["b"], "its rebalance timeout is 10 s"
    beat_all(b)
    assert len(b.active) == 6


def test_a_group_is_there_after_a_restart() -> None:
    world = world_of(group_streams_num_standby_replicas=1)
    a, b = Client(world, "a"), Client(world, "b", instance_id="two")
    a.join()
    b.join()
    beat_all(a, b)
    before = group_of(world)
    later = world.restart(group_streams_num_standby_replicas=1)
    group = group_of(later)
    assert (group.epoch, group.assignment_epoch, group.validated_epoch) == (before.epoch, before.assignment_epoch, 0)
    assert group.topology is not None
    assert before.topology is not None
    assert topology_record(GROUP, group.topology) == topology_record(GROUP, before.topology)
    assert {each: member.current for each, member in group.members.items()} == {
        each: member.current for each, member in before.members.items()
    }
    assert (group.targets, group.static_members) == (before.targets, before.static_members)
    for client in (a, b):
        client.world = later
        assert client.beat() is ErrorCode.NONE
    assert (group.epoch, later.state) == (before.epoch, "Stable"), "nothing has changed"


def test_a_deleted_group_is_gone_after_a_restart() -> None:
    world = world_of()
    a = Client(world, "a")
    a.join()
    codes: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, codes.append)
    a.leave()
    world.groups.admin.delete(GROUP, codes.append)
    world.run()
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    assert not next(iter(world.restart().groups.shards)).groups


def test_offsets_of_a_group_expire_when_no_member_reads_the_topic() -> None:
    world = world_of(offsets_retention_minutes=1)
    a = Client(world, "a")
    a.join()
    told: list[list[ErrorCode]] = []
    wanted = [Wanted(("t", 0), 5, -1, None)]
    world.groups.commits.commit(Committer(GROUP, "a", None, a.epoch), wanted, told.append)
    world.groups.commits.commit(Committer(GROUP, "a", None, a.epoch + 1), wanted, told.append)
    world.groups.commits.commit(Committer(GROUP), wanted, told.append)
    assert told == [[ErrorCode.NONE], [ErrorCode.STALE_MEMBER_EPOCH], [ErrorCode.UNKNOWN_MEMBER_ID]]
    reader = OffsetReader(GROUP, "a", a.epoch)
    found: Any = whole(world.groups.offsets.fetch(reader, None, require_stable=True))
    assert [(each[0], each[1].offset) for each in found] == [(("t", 0), 5)]
    stale = OffsetReader(GROUP, "a", a.epoch + 1)
    assert whole(world.groups.offsets.fetch(stale, None, require_stable=True)) is ErrorCode.STALE_MEMBER_EPOCH
    world.advance(30_000)
    a.beat()
    world.advance(40_000)
    world.groups.expire_offsets()
    world.run()
    assert next(iter(world.groups.shards)).offsets[GROUP].committed, "the topic is read"
    a.leave()
    world.groups.expire_offsets()
    world.run()
    assert GROUP not in next(iter(world.groups.shards)).groups


def test_long_work_is_done_in_turns() -> None:
    world = world_of(400)
    a, b = Client(world, "a"), Client(world, "b")
    a.join()
    assert (a.active, a.statuses) == (set(), [5]), "800 tasks are not computed in one turn"
    a.beat()
    assert len(a.active) == 800
    b.join()
    beat_all(a, b)
    assert (len(a.active), len(b.active), world.state) == (400, 400, "Stable")
    assert group_of(world.restart()).targets.keys() == {"a", "b"}


def test_long_topologies_are_looked_at_in_turns() -> None:
    names = {f"t{number}": 1 for number in range(600)}
    world = World(topics=MemoryTopics(**names), group_streams_initial_rebalance_delay_ms=0)
    wide = topology(*(subtopology(str(number), name) for number, name in enumerate(names)))
    a = Client(world, "a", topology=wide)
    a.join()
    assert group_of(world).state.value == "NotReady" or a.statuses == [5]
    world.advance(2_000)
    beat_all(a)
    assert len(a.active) == 600


def test_members_come_while_targets_are_computed() -> None:
    world = world_of(400)
    clients = [Client(world, f"m{number}") for number in range(4)]
    for client in clients:
        client.join()
    clients.pop().leave()
    beat_all(*clients, rounds=6)
    assert sorted(len(client.active) for client in clients) == [266, 267, 267]
    assert world.state == "Stable"


def test_memory_of_groups_is_bounded() -> None:
    world = world_of()
    bounds = world.groups.rebalance.bounds
    a = Client(world, "a")
    a.join()
    held = bounds.held_bytes
    assert held > 5_000
    b = Client(world, "b", process_id="p" * 20_000)
    b.join()
    assert bounds.held_bytes > held + 20_000
    b.leave()
    assert bounds.held_bytes <= held + 300
    bounds.most_bytes = bounds.held_bytes + 1_000
    assert b.join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(group_of(world).members) == ["a"]
    bounds.most_bytes <<= 10
    huge = topology(subtopology("0", "t", changelogs=(topic("c", cleanup_policy="x" * 2_000_000),)), epoch=9)
    assert b.join(topology=huge) is ErrorCode.UNKNOWN_SERVER_ERROR, "it does not fit into a record"
    a.leave()
    codes: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, codes.append)
    world.run()
    assert bounds.held_bytes == 0


def test_a_classic_member_takes_over_an_empty_group() -> None:
    world = world_of()
    a = Client(world, "a")
    a.join()
    assert world.join().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    a.leave()
    answer = world.join()
    assert isinstance(answer, Answer)
    assert type(world.group).__name__ == "ClassicGroup"
    assert not any(
        number in range(RecordType.STREAMS_GROUP_METADATA, RecordType.STREAMS_GROUP_TOPOLOGY + 1)
        for number in live_types(world)
    )


def live_types(world: World) -> set[int]:
    """The types of the records that compaction leaves."""
    last: dict[bytes, bytes | None] = {}
    for batch in world.log.read(0):
        for record in batch:
            assert record.key is not None
            last[bytes(record.key)] = record.value
    return {int.from_bytes(key[:2]) for key, value in last.items() if value is not None}
