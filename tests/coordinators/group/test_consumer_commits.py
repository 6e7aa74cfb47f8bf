"""Commits of members of consumer groups, at their epoch and at those before (KIP-1251)."""

from __future__ import annotations

from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, beat_all, numbers, world_of
from tests.coordinators.group.kit import GROUP, World, whole


def test_a_commit_that_a_heartbeat_overtook_counts_for_what_the_member_has_had_since_then() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    old = first.epoch
    second.join()
    beat_all(first, second)
    assert first.epoch == old + 1
    kept, lost = numbers(first), numbers(second)
    assert commit(world, first, old, *kept) is ErrorCode.NONE
    assert commit(world, first, old, *kept, *lost) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, first, old - 1, *kept) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, first, first.epoch + 1, *kept) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, second, old, *lost) is ErrorCode.STALE_MEMBER_EPOCH, "it has them since the next epoch"
    later = world.restart()
    assert commit(later, first, old, *kept) is ErrorCode.NONE, "since when is stored"
    assert commit(later, second, old, *lost) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_revoked_partition_that_no_other_member_wants_is_assigned_again_at_once() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join(), second.join()
    first.beat()
    assert (first.epoch, len(first.owned)) == (2, 3), "it learns what to revoke"
    described = {each.member_id: each for each in whole(world.groups.consumer.describe(GROUP)).members}
    assert described["a"].assignment.topic_partitions[0].partitions == (0, 1, 2, 3, 4, 5), "and has it until it has"
    second.leave()
    first.beat()
    assert (first.epoch, len(first.owned)) == (4, 6)
    kept = [number for _, number in first.since if first.since["t", number] == 2]
    back = [number for _, number in first.since if first.since["t", number] == 4]
    assert (len(kept), len(back)) == (3, 3)
    assert commit(world, first, 2, *kept) is ErrorCode.NONE
    assert commit(world, first, 2, *back) is ErrorCode.STALE_MEMBER_EPOCH


def commit(world: World, client: Client, epoch: int, *partitions: int) -> ErrorCode:
    told: list[list[ErrorCode]] = []
    wanted = [Wanted(("t", number), 1, -1, None) for number in partitions]
    world.groups.commits.commit(Committer(GROUP, client.member_id, None, epoch), wanted, told.append)
    (codes,) = told
    assert len(set(codes)) == 1
    return codes[0]
