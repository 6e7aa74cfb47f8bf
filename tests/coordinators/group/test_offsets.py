"""Commits, their reading, their transactions, their end."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.coordinators.group.shard import MOST_UNREPLICATED, GroupShard
from ixion.broker.coordinators.group.stored_offsets import OffsetReader
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.control import transaction_marker
from tests.coordinators.group.consumer_kit import Client
from tests.coordinators.group.kit import GROUP, World, settle, whole

DAY_MS = 86_400_000


def commit(
    world: World,
    offset: int,
    *,
    partition: TopicPartition = ("t", 0),
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    metadata: str | None = "",
    leader_epoch: int = -1,
    producer_id: int = -1,
    retention_ms: int = -1,
) -> ErrorCode:
    told: list[list[ErrorCode]] = []
    world.groups.commits.commit(
        Committer(GROUP, member, instance, generation, producer_id, 0 if producer_id >= 0 else -1),
        [Wanted(partition, offset, leader_epoch, metadata)],
        told.append,
        retention_ms=retention_ms,
    )
    world.run()
    ((code,),) = told
    return code


def fetch(world: World, *partitions: TopicPartition, stable: bool = False) -> list[int | ErrorCode]:
    """Offsets; -1 for none; a code where there is one."""
    found = whole(world.groups.offsets.fetch(OffsetReader(GROUP), partitions or [("t", 0)], require_stable=stable))
    assert isinstance(found, list)
    return [
        code if code is not ErrorCode.NONE else -1 if committed is None else committed.offset
        for _, committed, code in found
    ]


def end_transaction(world: World, producer_id: int, committed: bool) -> None:
    """As the replica manager does: the marker into the log, then word to the coordinator."""
    world.log.write(
        transaction_marker(
            commit=committed, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=0
        )
    )
    world.groups.on_transaction_marker(0, producer_id, committed)


def test_a_client_that_is_no_member_commits_to_an_empty_group() -> None:
    world = World()
    assert commit(world, 5) is ErrorCode.NONE
    assert fetch(world) == [5]
    assert world.state == "Empty"


def test_offset_epoch_and_metadata_are_kept_through_a_restart() -> None:
    world = World()
    commit(world, 5, metadata="Grüße", leader_epoch=7)
    for restarted in (False, True):
        found = whole(
            (world.restart() if restarted else world).groups.offsets.fetch(
                OffsetReader(GROUP), None, require_stable=False
            )
        )
        assert isinstance(found, list)
        ((partition, committed, code),) = found
        assert committed is not None
        assert (partition, committed.offset, committed.leader_epoch, committed.metadata, code) == (
            ("t", 0),
            5,
            7,
            "Grüße",
            ErrorCode.NONE,
        )


def test_partitions_without_offsets_say_minus_one() -> None:
    world = World()
    assert fetch(world, ("t", 0), ("u", 3)) == [-1, -1]
    commit(world, 5)
    assert fetch(world, ("t", 1), ("t", 0)) == [-1, 5]


def test_members_commit_in_their_generation() -> None:
    world = World()
    settle(world, "a")
    assert commit(world, 1, member="a-1", generation=1) is ErrorCode.NONE
    assert commit(world, 2, member="a-1", generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert commit(world, 2, member="a-1", generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert commit(world, 2, member="forged", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, 2, member="a-1", generation=1, instance="x") is ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(world) == [1]


def test_a_generation_of_a_group_that_is_not_there_is_refused() -> None:
    assert commit(World(), 1, member="a-1", generation=1) is ErrorCode.GROUP_ID_NOT_FOUND


def test_members_may_commit_while_a_rebalance_gathers_but_not_while_it_assigns() -> None:
    world = World()
    settle(world, "a")
    world.join(client="b")
    assert commit(world, 1, member="a-1", generation=1) is ErrorCode.NONE
    world.join("a-1")
    assert commit(world, 2, member="a-1", generation=2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_sign_of_life() -> None:
    world = World()
    settle(world, "a", session_ms=10_000)
    for offset in range(4):
        world.advance(9_000)
        assert commit(world, offset, member="a-1", generation=1) is ErrorCode.NONE


def test_long_metadata_is_refused_alone() -> None:
    world = World(offset_metadata_max_bytes=10)
    told: list[list[ErrorCode]] = []
    wanted = [Wanted(("t", 0), 1, -1, "x" * 11), Wanted(("t", 1), 2, -1, "x" * 10)]
    world.groups.commits.commit(Committer(GROUP), wanted, told.append)
    assert told == [[ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]]
    assert fetch(world, ("t", 0), ("t", 1)) == [-1, 2]


def test_nothing_is_answered_or_seen_before_it_is_in_the_log() -> None:
    world = World()
    world.log.hold = True
    told: list[list[ErrorCode]] = []
    world.groups.commits.commit(Committer(GROUP), [Wanted(("t", 0), 1, -1, None)], told.append)
    assert (told, fetch(world)) == ([], [-1])
    world.log.release()
    assert (told, fetch(world)) == ([[ErrorCode.NONE]], [1])


@pytest.mark.parametrize(
    ("of_log", "answer"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_a_log_that_refuses_changes_nothing(of_log: ErrorCode, answer: ErrorCode) -> None:
    world = World()
    commit(world, 1)
    world.log.fail = of_log
    assert commit(world, 2) is answer
    assert fetch(world) == [1]


def test_offsets_of_a_transaction_count_when_it_commits() -> None:
    world = World()
    commit(world, 1)
    commit(world, 2, producer_id=9)
    assert (fetch(world), fetch(world, stable=True)) == ([1], [ErrorCode.UNSTABLE_OFFSET_COMMIT])
    assert fetch(world, ("t", 1), stable=True) == [-1], "only the partition that is pending"
    end_transaction(world, 9, True)
    assert fetch(world, stable=True) == [2]
    assert fetch(world.restart(), stable=True) == [2]


def test_offsets_of_an_aborted_transaction_never_were() -> None:
    world = World()
    commit(world, 1)
    commit(world, 2, producer_id=9)
    end_transaction(world, 9, False)
    assert fetch(world, stable=True) == [1]
    assert fetch(world.restart(), stable=True) == [1]


@pytest.mark.parametrize("producer_id", [-1, 9], ids=["consumer", "transaction"])
def test_an_offset_that_is_not_replicated_is_unstable(producer_id: int) -> None:
    """Another broker may lead already, have taken the commit again, and have seen its transaction end."""
    world = World()
    commit(world, 1)
    world.log.replicated = world.log.end(0)
    world.log.hold = True
    told: list[list[ErrorCode]] = []
    committer = Committer(GROUP, "", None, -1, producer_id, 0 if producer_id >= 0 else -1)
    world.groups.commits.commit(committer, [Wanted(("t", 0), 2, -1, "")], told.append)
    world.run()
    assert not told
    assert (fetch(world), fetch(world, stable=True)) == ([1], [ErrorCode.UNSTABLE_OFFSET_COMMIT])
    world.log.held.clear()  # the commit ran out of time, and its record is still in the log
    assert fetch(world, stable=True) == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    world.log.replicated = world.log.end(0)
    assert fetch(world, stable=True) == [1]


def test_many_groups_that_wait_for_replicas_are_bounded_and_unstable() -> None:
    shard = GroupShard(0, 0)
    for number in range(MOST_UNREPLICATED + 1):
        shard.wait_for_replicas(f"g{number}", number + 1)
    assert len(shard.unreplicated) == 1
    assert shard.awaited_end("g0") == shard.awaited_end(f"g{MOST_UNREPLICATED}") == MOST_UNREPLICATED + 1


def test_an_open_transaction_stays_open_through_a_restart() -> None:
    world = World()
    commit(world, 2, producer_id=9)
    later = world.restart()
    assert fetch(later, stable=True) == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    end_transaction(later, 9, True)
    assert fetch(later, stable=True) == [2]


def test_of_two_commits_the_one_later_in_the_log_counts() -> None:
    world = World()
    commit(world, 500, producer_id=7)
    commit(world, 600)
    end_transaction(world, 7, True)
    assert fetch(world) == [600]
    assert fetch(world.restart()) == [600]


def test_old_transactional_clients_name_no_member() -> None:
    world = World()
    settle(world, "a")
    assert commit(world, 1, producer_id=9) is ErrorCode.NONE
    assert commit(world, 1, producer_id=9, member="a-1", generation=1) is ErrorCode.NONE
    assert commit(world, 1, producer_id=9, member="a-1", generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert commit(world, 1, producer_id=9, member="other", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_an_empty_group_expire() -> None:
    world = World(offsets_retention_minutes=10)
    settle(world, "a")
    commit(world, 1, member="a-1", generation=1)
    for _ in range(100):
        world.heartbeat("a-1", 1)
        world.advance(9_000)
    world.groups.expire_offsets()
    world.run()
    assert fetch(world) == [1], "it is read"
    world.leave("a-1")
    world.advance(599_000)
    world.groups.expire_offsets()
    world.run()
    assert fetch(world) == [1]
    world.advance(1_000)
    world.groups.expire_offsets()
    world.run()
    assert fetch(world) == [-1]
    assert fetch(world.restart()) == [-1]
    assert whole(world.groups.admin.list((), ()))[1] == ()


def test_offsets_of_topics_that_no_member_reads_expire() -> None:
    world = World(offsets_retention_minutes=1)
    settle(world, "a", session_ms=600_000)
    commit(world, 1, member="a-1", generation=1)
    commit(world, 2, partition=("dropped", 0), member="a-1", generation=1)
    world.advance(61_000)
    world.groups.expire_offsets()
    world.run()
    assert fetch(world, ("t", 0), ("dropped", 0)) == [1, -1]


def test_a_pending_offset_keeps_the_one_before_it() -> None:
    world = World(offsets_retention_minutes=1)
    commit(world, 1)
    commit(world, 2, producer_id=9)
    world.advance(61_000)
    world.groups.expire_offsets()
    world.run()
    assert fetch(world) == [1]


def test_an_old_client_may_give_an_offset_its_own_retention() -> None:
    world = World(offsets_retention_minutes=1)
    commit(world, 1, retention_ms=500_000)
    later = world.restart(offsets_retention_minutes=1)
    later.advance(61_000)
    later.groups.expire_offsets()
    later.run()
    assert fetch(later) == [1]
    later.advance(500_000)
    later.groups.expire_offsets()
    later.run()
    assert fetch(later) == [-1]


def test_expiry_is_looked_for_again_and_again() -> None:
    world = World(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    world.groups.start()
    commit(world, 1)
    world.advance(59_000)
    assert fetch(world) == [1]
    world.advance(3_000)
    assert fetch(world) == [-1]


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    world = World()
    commit(world, 1)
    commit(world, 2, partition=("u", 0))
    world.groups.on_topics_deleted(["t"])
    world.run()
    assert fetch(world, ("t", 0), ("u", 0)) == [-1, 2]
    assert fetch(world.restart(), ("t", 0), ("u", 0)) == [-1, 2]


def test_offsets_are_deleted_unless_they_are_read() -> None:
    world = World()
    told: list[tuple[ErrorCode, list[ErrorCode]]] = []

    def delete(*partitions: TopicPartition) -> tuple[ErrorCode, list[ErrorCode]]:
        world.groups.offsets.delete(GROUP, partitions, lambda code, codes: told.append((code, codes)))
        return told[-1]

    assert delete(("t", 0)) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    settle(world, "a")
    commit(world, 1, member="a-1", generation=1)
    commit(world, 2, partition=("u", 0), member="a-1", generation=1)
    assert delete(("t", 0), ("u", 0)) == (
        ErrorCode.NONE,
        [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE],
    )
    assert fetch(world, ("t", 0), ("u", 0)) == [1, -1]
    world.leave("a-1")
    assert delete(("t", 0)) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert fetch(world) == [-1]


def test_members_that_are_no_consumers_keep_all_offsets() -> None:
    world = World()
    settle(world, "a", protocol_type="connect")
    told: list[ErrorCode] = []
    world.groups.offsets.delete(GROUP, [("t", 0)], lambda code, codes: told.append(code))
    assert told == [ErrorCode.NON_EMPTY_GROUP]


def test_offsets_that_no_batch_can_hold_are_refused_before_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr(world.log, "largest_batch", lambda _partition: 4_300)
    told: list[list[ErrorCode]] = []
    for count in (100, 101):
        wanted = [Wanted(("t", number), 7, -1, None) for number in range(count)]
        world.groups.commits.commit(Committer("g"), wanted, told.append)
        world.run()
    assert told == [[ErrorCode.NONE] * 100, [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * 101]
    assert len(world.log.batches) == 1
    assert len(world.log.batches[0]) > 4_300, "the estimate is of the smallest records there are"


def test_there_can_be_so_many_groups() -> None:
    """Each commit for an unknown group creates one, and so does each join."""
    world = World()

    def commit_for(group: str) -> ErrorCode:
        told: list[list[ErrorCode]] = []
        world.groups.commits.commit(Committer(group), [Wanted(("t", 0), 1, -1, "")], told.append)
        world.run()
        return told[0][0]

    world.groups.shards.most_groups = 3
    assert [commit_for(f"g{n}") for n in range(4)] == [ErrorCode.NONE] * 3 + [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert commit_for("g0") is ErrorCode.NONE  # one of those that are there
    assert world.join().code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert Client(world, "a", "t").join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.groups.shards.most_groups = 4
    assert commit_for("g3") is ErrorCode.NONE
