"""A coordinator finds its groups again."""

from __future__ import annotations

from ixion.coordinators.group import shards
from ixion.coordinators.group.commits import Committer, Wanted
from ixion.coordinators.group.stored_offsets import Reader
from ixion.model.errors import ErrorCode
from ixion.records.builder import BatchBuilder
from tests.coordinators.group.kit import GROUP, MemoryLog, World, settle, subscription


def test_a_stable_group_goes_on_where_it_was() -> None:
    world = World()
    settle(world, "a", "b")
    later = world.restart()
    assert later.state == "Stable"
    assert later.heartbeat("a-1", 1) is ErrorCode.NONE
    assert later.sync("b-2", 1).sync.assignment == b"of b-2"
    assert later.join("b-2").join.generation_id == 1
    assert later.join("a-1").waits, "the leader of before leads still"


def test_members_that_did_not_survive_time_out() -> None:
    world = World()
    settle(world, "a", "b", session_ms=10_000)
    later = world.restart()
    later.advance(9_000)
    later.heartbeat("a-1", 1)
    later.advance(2_000)
    assert list(later.group.members) == ["a-1"]


def test_an_emptied_group_stays_empty_and_keeps_its_generation() -> None:
    world = World()
    settle(world, "a")
    world.leave("a-1")
    later = world.restart()
    assert (later.state, later.group.generation) == ("Empty", 2)
    waiting = later.join(client="b")
    later.advance(5)
    assert waiting.join.generation_id == 3


def test_the_topics_of_a_loaded_group_are_known() -> None:
    world = World()
    settle(world, "a", protocols={"range": subscription("t", "u")})
    assert world.restart().group.subscribed == {"t", "u"}


def test_a_long_log_is_loaded_in_slices() -> None:
    world = World()
    for offset in range(2 * shards.SLICE):
        world.groups.commits.commit(Committer(GROUP), [Wanted(("t", 0), offset, -1, None)], lambda codes: None)
    world.groups.on_resigned(0)
    world.groups.on_elected(0, 1)
    assert world.groups.offsets.fetch(Reader(GROUP), None, require_stable=False) is (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    assert world.groups.admin.list((), ())[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.run()
    found = world.groups.offsets.fetch(Reader(GROUP), None, require_stable=False)
    assert isinstance(found, list)
    assert found[0][1] is not None
    assert found[0][1].offset == 2 * shards.SLICE - 1


def test_while_loading_members_are_kept_calm() -> None:
    world = World()
    settle(world, "a")
    for _ in range(shards.SLICE):
        world.groups.commits.commit(
            Committer(GROUP, "a-1", None, 1), [Wanted(("t", 0), 1, -1, None)], lambda codes: None
        )
    world.groups.on_resigned(0)
    world.groups.on_elected(0, 1)
    assert world.groups.members.leave(GROUP, []) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.loop, kept = type(world.loop)(), world.loop
    assert world.heartbeat("a-1", 1) is ErrorCode.NONE
    assert world.sync("a-1", 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    world.loop = kept
    world.run()
    assert world.heartbeat("a-1", 1) is ErrorCode.NONE


def test_records_that_nobody_knows_are_passed_over() -> None:
    log = MemoryLog()
    builder = BatchBuilder()
    builder.append(b"\x00\x63future", b"\x00\x00", timestamp=0)
    builder.append(b"\x00\x01torn", b"\x00\x03", timestamp=0)
    builder.append(b"\x00", b"\x00\x03", timestamp=0)
    log.write(builder.build())
    world = World(log)
    settle(world, "a")
    assert world.restart().state == "Stable"


def test_an_old_epoch_does_not_load_again() -> None:
    world = World()
    settle(world, "a")
    waiting = world.join(client="b")
    world.groups.on_elected(0, 0)
    assert waiting.waits
    world.groups.on_elected(0, 1)
    world.run()
    assert waiting.code is ErrorCode.NOT_COORDINATOR
