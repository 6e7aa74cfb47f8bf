"""Works on very many groups or offsets are done in turns of the loop."""

from __future__ import annotations

from ixion.broker.coordinators.group.offsets import Committed
from ixion.broker.coordinators.group.records import offset_record
from ixion.broker.coordinators.group.stored_offsets import FORGET_AT_ONCE, OffsetReader
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.timer.turns import Steps
from tests.coordinators.group.consumer_kit import Client, world_of
from tests.coordinators.group.kit import GROUP, START_MS, MemoryLog, World, settle, whole

MANY = 3_000
WEEK_MS = 7 * 24 * 3_600_000


def offsets(groups: int, partitions: int) -> MemoryLog:
    """A log with offsets of that many groups, each for that many partitions."""
    log = MemoryLog()
    for group in range(groups):
        builder = BatchBuilder()
        for number in range(partitions):
            value = Committed(number, -1, "", START_MS, -1, -1)
            builder.append(*offset_record(f"{GROUP}{group}", ("t", number), value), timestamp=0)
        log.write(builder.build())
    return log


def groups_of(world: World) -> int:
    return len(whole(world.groups.admin.list((), ()))[1])


def steps_of(steps: Steps[object]) -> int:
    return sum(1 for _ in steps)


def test_very_many_groups_expire_in_turns() -> None:
    world = World(offsets(MANY, 1), start_ms=START_MS + 2 * WEEK_MS)
    assert groups_of(world) == MANY
    world.groups.expire_offsets()
    assert 0 < groups_of(world) < MANY, "the loop has its turn before all are gone"
    world.groups.expire_offsets()
    world.run()
    assert groups_of(world) == 0
    assert groups_of(world.restart()) == 0


def test_a_group_of_very_many_offsets_expires_in_pieces() -> None:
    world = World(offsets(1, MANY), start_ms=START_MS + 2 * WEEK_MS)
    known = len(world.log.batches)
    world.groups.expire_offsets()
    world.run()
    assert groups_of(world) == 0
    pieces = [int(BatchView(batch).count) for batch in world.log.batches[known:]]
    assert (max(pieces), sum(pieces)) == (FORGET_AT_ONCE, MANY)


def test_what_is_committed_while_old_offsets_go_stays() -> None:
    world = World(offsets(MANY, 1), start_ms=START_MS + 2 * WEEK_MS)
    world.groups.expire_offsets()
    left = {each.group_id for each in whole(world.groups.admin.list((), ()))[1]}
    chosen = max(left, key=lambda name: int(name.removeprefix(GROUP)))
    world.groups.shards.at(0).commit(chosen, ("t", 0), Committed(7, -1, "", world.clock.now_ms, -1, 10**9))  # type: ignore[union-attr]
    world.run()
    assert [each.group_id for each in whole(world.groups.admin.list((), ()))[1]] == [chosen]


def test_offsets_of_deleted_topics_are_forgotten_in_turns() -> None:
    world = World(offsets(MANY, 2))
    shard = world.groups.shards.at(0)
    assert shard is not None
    world.groups.on_topics_deleted(["t"])
    assert 0 < len(shard.offsets) < MANY
    last = f"{GROUP}{MANY - 1}"
    shard.commit(last, ("t", 0), Committed(7, -1, "", world.clock.now_ms + 1, -1, 10**9))
    world.run()
    assert list(shard.offsets) == [last], "it is of a topic that was recreated"
    found = whole(world.groups.offsets.fetch(OffsetReader(last), None, require_stable=False))
    assert isinstance(found, list)
    assert [partition for partition, _, _ in found] == [("t", 0)]


def test_listing_and_describing_take_a_step_for_each() -> None:
    world = World(offsets(MANY, 1))
    assert steps_of(world.groups.admin.list((), ())) == MANY
    assert steps_of(world.groups.count_states()) == MANY
    world = World()
    settle(world, *(f"m{number}" for number in range(20)))
    assert steps_of(world.groups.admin.describe(GROUP)) == 20
    world = world_of()
    for number in range(20):
        Client(world, f"m{number}", "t").join()
    assert steps_of(world.groups.consumer.describe(GROUP)) == 20
