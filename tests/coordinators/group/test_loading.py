"""A coordinator finds its groups again."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.group.offsets import Committed
from ixion.broker.coordinators.group.records import GROUP_VERSION, group_key, offset_key, offset_record
from ixion.broker.coordinators.group.shard import Group
from ixion.broker.coordinators.group.stored_offsets import OffsetReader
from ixion.broker.coordinators.loader import LOGGED, RETRY_MS
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.storage import encode
from ixion.language.protocol.stored.group_metadata import GroupMetadataValue, MemberMetadata
from ixion.language.records.builder import BatchBuilder
from tests.coordinators.group.kit import GROUP, MemoryLog, World, settle, subscription, whole
from tests.records import forge

BAD: list[tuple[bytes | None, bytes | None]] = [
    (b"\x00\x63future", b"\x00\x00"),
    (b"\x00\x01torn", b"\x00\x03"),
    (b"\x00", b"\x00\x03"),
    (None, b"no key"),
    (offset_key(GROUP, ("t", 0)), b"\x00\x63 of a later version"),
    (offset_key(GROUP, ("t", 0)), b""),
    (group_key(GROUP), b"\x00\x03garbage"),
    (b"\x00\x03\x00\x01g", b"\x00\x00"),
    (b"\x00\x08\x00\x01g\x00\x01m", b"\x00\x00garbage"),
]


def member(name: str, instance: str | None) -> MemberMetadata:
    return MemberMetadata(
        member_id=name,
        group_instance_id=instance,
        client_id="c",
        client_host="/h",
        rebalance_timeout=1_000,
        session_timeout=10_000,
        subscription=b"",
        assignment=b"",
    )


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


def write_many(log: MemoryLog, count: int = 20_000) -> None:
    """More commits than anybody can load in one turn."""
    for first in range(0, count, 1_000):
        builder = BatchBuilder()
        for number in range(first, first + 1_000):
            key, value = offset_record(GROUP, ("t", number), Committed(number, -1, "", 0, -1, -1))
            builder.append(key, value, timestamp=0)
        log.write(builder.build())


def test_a_long_log_is_loaded_in_turns() -> None:
    world = World()
    write_many(world.log)
    world.groups.on_resigned(0)
    world.groups.on_elected(0, 1)
    assert whole(world.groups.offsets.fetch(OffsetReader(GROUP), None, require_stable=False)) is (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    assert whole(world.groups.admin.list((), ()))[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.run()
    found = whole(world.groups.offsets.fetch(OffsetReader(GROUP), None, require_stable=False))
    assert isinstance(found, list)
    assert [committed.offset for _, committed, _ in found if committed is not None] == list(range(20_000))


def test_a_partition_that_is_resigned_while_it_is_loaded_is_not_served() -> None:
    world = World()
    write_many(world.log)
    world.groups.on_resigned(0)
    world.groups.on_elected(0, 1)
    world.groups.on_resigned(0)
    world.run()
    assert (
        whole(world.groups.offsets.fetch(OffsetReader(GROUP), None, require_stable=False)) is ErrorCode.NOT_COORDINATOR
    )
    assert world.groups.rebalance.bounds.held_bytes == 0


def test_while_loading_members_are_kept_calm() -> None:
    world = World()
    settle(world, "a")
    write_many(world.log)
    world.groups.on_resigned(0)
    world.groups.on_elected(0, 1)
    assert world.groups.classic.leave(GROUP, []) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.loop, kept = type(world.loop)(), world.loop
    assert world.heartbeat("a-1", 1) is ErrorCode.NONE
    assert world.sync("a-1", 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    world.loop = kept
    world.run()
    assert world.heartbeat("a-1", 1) is ErrorCode.NONE


def test_a_record_that_cannot_be_read_is_logged_counted_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    settle(World(log), "a")
    builder = BatchBuilder()
    for key, value in BAD:
        builder.append(key, value, timestamp=0)
    builder.append(b"\x00\x12\x00\x01s", b"\x00\x00of a Streams group", timestamp=0)
    log.write(builder.build())
    world = World(log)
    assert world.state == "Stable"
    assert world.groups.shards.loader.skipped == len(BAD)
    told = [record.getMessage() for record in caplog.records]
    first = log.next_offset - len(BAD) - 1
    for place in range(len(BAD)):
        assert any(f"__consumer_offsets-0: skipped the record at offset {first + place}" in each for each in told)
    waiting = world.join("a-1")
    world.advance(10)
    assert waiting.code is ErrorCode.NONE


def test_a_group_that_the_rules_refuse_is_skipped_and_its_offsets_are_kept() -> None:
    """Two members of one instance, which no coordinator writes: it was an exception at every start."""
    log = MemoryLog()
    twins = tuple(member(name, instance="i") for name in ("a", "b"))
    stored = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="a", current_state_timestamp=0, members=twins
    )
    builder = BatchBuilder()
    builder.append(*offset_record(GROUP, ("t", 0), Committed(5, -1, "", 0, -1, -1)), timestamp=0)
    builder.append(group_key(GROUP), encode(stored, GROUP_VERSION), timestamp=0)
    log.write(builder.build())
    world = World(log)
    assert (world.state, world.groups.shards.loader.skipped) == ("Empty", 1)
    waiting = world.join()
    world.advance(10)
    assert waiting.code is ErrorCode.MEMBER_ID_REQUIRED or waiting.code is ErrorCode.NONE
    found = whole(world.groups.offsets.fetch(OffsetReader(GROUP), None, require_stable=False))
    assert isinstance(found, list)
    assert found[0][1] is not None


def test_many_bad_records_are_logged_a_few_times_and_counted_all(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    builder = BatchBuilder()
    for _ in range(500):
        builder.append(*BAD[0], timestamp=0)
    log.write(builder.build())
    world = World(log)
    assert world.groups.shards.loader.skipped == 500
    assert len(caplog.records) == LOGGED + 1
    assert "500 records were skipped" in caplog.messages[-1]


def test_a_batch_that_cannot_be_opened_is_skipped() -> None:
    log = MemoryLog()
    settle(World(log), "a")
    builder = BatchBuilder()
    builder.append(b"\x00\x01", b"", timestamp=0)
    torn = bytearray(builder.build())
    torn[61:63] = b"\xff\xff"  # the length of the record
    log.write(bytes(torn))
    world = World(log)
    assert (world.state, world.groups.shards.loader.skipped) == ("Stable", 1)


def test_a_group_that_cannot_be_resumed_is_left_out_and_the_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    for group_id in ("bad", GROUP):
        builder = BatchBuilder()
        builder.append(*offset_record(group_id, ("t", 0), Committed(5, -1, "", 0, -1, -1)), timestamp=0)
        log.write(builder.build())
    world = World(log)
    world.groups.on_resigned(0)
    resume = world.groups.shards._on_loaded

    def broken(group: Group) -> None:
        if group.group_id == "bad":
            raise RuntimeError("as a test wants it")
        resume(group)

    monkeypatch.setattr(world.groups.shards, "_on_loaded", broken)
    world.groups.on_elected(0, 1)
    world.run()
    assert [each.group_id for each in whole(world.groups.admin.list((), ()))[1]] == [GROUP]
    assert world.groups.shards.loader.skipped == 1


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.CORRUPT_MESSAGE), OSError(5, "no disk"), RuntimeError("?")])
def test_a_log_that_cannot_be_read_fails_its_partition_until_it_can(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    log = MemoryLog()
    settle(World(log), "a")
    log.unreadable = error
    world = World(log)
    assert world.heartbeat("a-1", 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert whole(world.groups.admin.list((), ())) == (ErrorCode.NONE, ())
    assert list(world.groups.shards.loader.failed) == [0]
    (said,) = [each for each in caplog.records if "__consumer_offsets-0 cannot be loaded" in each.getMessage()]
    assert str(error) in said.getMessage()
    assert bool(said.exc_info) == (not isinstance(error, KafkaError)), "a known fault needs no traceback"
    world.advance(RETRY_MS)
    tries = log.reads
    world.advance(RETRY_MS)
    assert log.reads == tries, "the second pause is longer than the first"
    log.unreadable = None
    world.advance(RETRY_MS)
    assert world.heartbeat("a-1", 1) is ErrorCode.NONE
    assert world.groups.shards.loader.failed == {}


def test_a_failed_partition_is_not_read_again_once_it_is_led_elsewhere() -> None:
    log = MemoryLog()
    log.unreadable = OSError(5, "no disk")
    world = World(log)
    world.groups.on_resigned(0)
    assert world.groups.shards.loader.failed == {}
    tries = log.reads
    world.advance(10 * RETRY_MS)
    assert log.reads == tries


def test_an_old_epoch_does_not_load_again() -> None:
    world = World()
    settle(world, "a")
    waiting = world.join(client="b")
    world.groups.on_elected(0, 0)
    assert waiting.waits
    world.groups.on_elected(0, 1)
    world.run()
    assert waiting.code is ErrorCode.NOT_COORDINATOR


def test_a_marker_that_compaction_has_emptied_can_be_read() -> None:
    log = MemoryLog()
    settle(World(log), "a")
    log.write(forge.batch(b"", count=0, last_offset_delta=0, attributes=0x30, producer_id=7))
    world = World(log)
    assert world.state == "Stable"
    assert world.groups.shards.loader.skipped == 0
