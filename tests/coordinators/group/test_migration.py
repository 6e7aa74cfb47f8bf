"""Groups that go from one protocol to the other with their members in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.records import group_tombstone
from ixion.broker.coordinators.group.stored_offsets import OffsetReader
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k13_leave_group import MemberIdentity
from ixion.language.protocol.storage import decode, encode
from ixion.language.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.coordinators.group.consumer_kit import Client, numbers
from tests.coordinators.group.kit import GROUP, MemoryTopics, World, whole


def world_of(**settings: Any) -> World:
    return World(topics=MemoryTopics(t=4), **settings)


def subscription(*owned: int) -> dict[str, bytes]:
    partitions = (TopicPartition(topic="t", partitions=owned),) if owned else ()
    return {"cooperative-sticky": encode(ConsumerProtocolSubscription(topics=("t",), owned_partitions=partitions), 1)}


def partitions_in(assignment: bytes) -> list[int]:
    read = decode(ConsumerProtocolAssignment, assignment)
    return [number for topic in read.assigned_partitions for number in topic.partitions]


def assigned(*partitions: int) -> bytes:
    return encode(
        ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=partitions),)), 1
    )


def classic_group(world: World) -> str:
    """One stable classic member that has everything."""
    waiting = world.join(client="old", protocols=subscription())
    world.advance(5)
    member_id = waiting.join.member_id
    world.sync(member_id, 1, {member_id: assigned(0, 1, 2, 3)})
    return member_id


def test_the_record_of_the_classic_group_goes_with_it() -> None:
    """Otherwise compaction would keep it for ever, and a later load would bring the deleted group back."""
    world = world_of()
    classic_group(world)
    key, _ = group_tombstone(GROUP)

    def last() -> bytes | None:
        views = world.log.read(0)
        found = [record.value for view in views for record in view.records() if record.key == key]
        return found[-1]

    assert last() is not None
    assert Client(world, "new", "t").join() is ErrorCode.NONE
    assert last() is None


def test_up_one_client_at_a_time() -> None:
    world = world_of()
    old = classic_group(world)
    new = Client(world, "new", "t")
    assert new.join() is ErrorCode.NONE
    assert isinstance(world.group, ConsumerGroup)
    assert (numbers(new), new.epoch) == ([], 2)
    assert world.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    first = world.join(old, protocols=subscription(0, 1, 2, 3)).join
    assert (first.error_code, first.generation_id, first.protocol_name) == (ErrorCode.NONE, 1, "cooperative-sticky")
    target = set(partitions_in(world.sync(old, 1).sync.assignment))
    assert len(target) == 2
    new.beat()
    assert numbers(new) == [], "the others have not been given back yet"
    assert world.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    second = world.join(old, protocols=subscription(*target)).join
    assert second.generation_id == 2
    assert partitions_in(world.sync(old, 2).sync.assignment) == sorted(target)
    new.beat()
    assert sorted([*numbers(new), *target]) == [0, 1, 2, 3]
    assert world.heartbeat(old, 2) is ErrorCode.NONE
    assert world.leave(old) is ErrorCode.NONE
    new.beat()
    assert numbers(new) == [0, 1, 2, 3]


def test_down_when_the_last_new_one_leaves() -> None:
    world = world_of()
    old = classic_group(world)
    new = Client(world, "new", "t")
    new.join()
    assert new.leave() is ErrorCode.NONE
    assert isinstance(world.group, ClassicGroup)
    assert world.state == "PreparingRebalance"
    again = world.join(old, protocols=subscription(0, 1, 2, 3))
    assert again.join.leader == old
    assert again.join.generation_id > 2
    assert world.restart().group.generation == 2, "what was written when it went down"


def test_offsets_stay_through_both() -> None:
    world = world_of()
    old = classic_group(world)
    codes: list[list[ErrorCode]] = []

    def committed() -> int:
        found = whole(world.groups.offsets.fetch(OffsetReader(GROUP), [("t", 0)], require_stable=False))
        assert isinstance(found, list)
        assert found[0][1] is not None
        return found[0][1].offset

    world.groups.commits.commit(Committer(GROUP, old, None, 1), [Wanted(("t", 0), 5, -1, "")], codes.append)
    new = Client(world, "new", "t")
    new.join()
    assert committed() == 5
    world.groups.commits.commit(Committer(GROUP, "new", None, new.epoch), [Wanted(("t", 0), 6, -1, "")], codes.append)
    world.groups.commits.commit(Committer(GROUP, "new", None, 9), [Wanted(("t", 0), 7, -1, "")], codes.append)
    world.groups.commits.commit(Committer(GROUP, old, None, 9), [Wanted(("t", 0), 7, -1, "")], codes.append)
    world.groups.commits.commit(Committer(GROUP), [Wanted(("t", 0), 7, -1, "")], codes.append)
    assert codes == [
        [ErrorCode.NONE],
        [ErrorCode.NONE],
        [ErrorCode.STALE_MEMBER_EPOCH],
        [ErrorCode.ILLEGAL_GENERATION],
        [ErrorCode.UNKNOWN_MEMBER_ID],
    ]
    new.leave()
    assert committed() == 6


def test_a_new_classic_member_joins_a_consumer_group() -> None:
    world = world_of()
    new = Client(world, "new", "t")
    new.join()
    told = world.join(version=5, protocols=subscription())
    assert told.code is ErrorCode.MEMBER_ID_REQUIRED
    joined = world.join(told.join.member_id, version=5, protocols=subscription()).join
    assert (joined.error_code, joined.leader) == (ErrorCode.NONE, "")
    member_id, generation = joined.member_id, joined.generation_id
    assert partitions_in(world.sync(member_id, generation).sync.assignment) == []
    new.beat()
    new.beat()
    assert world.heartbeat(member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    again = world.join(member_id, version=5, protocols=subscription()).join
    assert len(partitions_in(world.sync(member_id, again.generation_id).sync.assignment)) == 2


def test_a_classic_member_that_falls_silent_is_removed() -> None:
    world = world_of()
    old = classic_group(world)
    new = Client(world, "new", "t")
    new.join()
    for _ in range(4):
        world.advance(3_000)
        new.beat()
    new.beat()
    assert list(world.group.members) == ["new"]
    assert world.heartbeat(old, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert numbers(new) == [0, 1, 2, 3]


def test_a_classic_member_that_does_its_part_stays() -> None:
    world = world_of()
    old = classic_group(world)
    new = Client(world, "new", "t")
    new.join()
    assert world.sync(old, 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    owned, generation = [0, 1, 2, 3], 1
    for _ in range(30):  # longer than its rebalance timeout, from the first request of a rebalance on
        new.beat()
        if world.heartbeat(old, generation) is ErrorCode.REBALANCE_IN_PROGRESS:
            generation = world.join(old, protocols=subscription(*owned)).join.generation_id
            owned = partitions_in(world.sync(old, generation).sync.assignment)
        world.advance(3_000)
    assert set(world.group.members) == {old, "new"}
    assert sorted([*owned, *numbers(new)]) == [0, 1, 2, 3]
    assert world.heartbeat(old, generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.sync(old, generation - 1).code is ErrorCode.ILLEGAL_GENERATION


def test_a_silent_member_is_removed_after_the_downgrade() -> None:
    world = world_of()
    classic_group(world)
    new = Client(world, "new", "t")
    new.join()
    new.leave()
    world.advance(10_100)
    assert (world.state, world.group.members) == ("Empty", {})


def test_a_group_that_went_up_and_was_deleted_does_not_come_back() -> None:
    world = world_of()
    old = classic_group(world)
    new = Client(world, "new", "t")
    new.join()
    world.leave(old)
    new.leave()
    codes: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, codes.append)
    assert codes == [ErrorCode.NONE]
    assert whole(world.restart().groups.admin.list((), ()))[1] == ()


def test_the_policy_may_forbid_going_up() -> None:
    world = world_of(group_consumer_migration_policy="downgrade")
    classic_group(world)
    assert Client(world, "new", "t").join() is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.state == "Stable"


def test_the_policy_may_forbid_going_down() -> None:
    world = world_of(group_consumer_migration_policy="upgrade")
    old = classic_group(world)
    new = Client(world, "new", "t")
    new.join()
    new.leave()
    assert isinstance(world.group, ConsumerGroup)
    assert list(world.group.members) == [old]


def test_only_consumers_can_go_up() -> None:
    world = world_of()
    world.join(protocol_type="connect", protocols={"x": b""})
    world.advance(5)
    assert Client(world, "new", "t").join() is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(world.group, ClassicGroup)


def test_empty_groups_change_freely() -> None:
    world = world_of(group_consumer_migration_policy="disabled")
    world.leave(classic_group(world))
    new = Client(world, "new", "t")
    assert new.join() is ErrorCode.NONE
    assert isinstance(world.group, ConsumerGroup)
    new.leave()
    classic_group(world)
    later = world.restart()
    assert isinstance(later.group, ClassicGroup)
    assert later.state == "Stable"


def test_what_waits_in_a_classic_rebalance_is_sent_to_rejoin() -> None:
    world = world_of()
    old = classic_group(world)
    waiting = world.join(client="other", protocols=subscription())
    assert waiting.waits
    Client(world, "new", "t").join()
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert old in world.group.members


def test_a_consumer_group_with_classic_members_survives_a_restart() -> None:
    world = world_of()
    old = classic_group(world)
    new = Client(world, "new", "t")
    new.join()
    later = world.restart()
    assert isinstance(later.group, ConsumerGroup)
    assert later.group.members[old].is_classic
    assert later.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_first_epoch_is_the_last_generation_even_if_the_new_member_reads_nothing() -> None:
    world = world_of()
    old = classic_group(world)
    world.join(old, protocols=subscription())
    world.sync(old, 2, {old: assigned(0, 1, 2, 3)})
    idle = Client(world, "new")
    assert idle.join() is ErrorCode.NONE
    assert (idle.epoch, world.group.epoch, world.state) == (2, 2, "Stable")
    before = world.group
    after = world.restart().group
    assert (after.epoch, after.assignment_epoch, after.metadata_hash) == (2, 2, before.metadata_hash)


def test_an_instance_may_go_from_one_protocol_to_the_other() -> None:
    world = world_of()
    Client(world, "new", "t").join()
    old = world.join(client="old", instance="i", protocols=subscription(), version=5).join
    assert world.group.members[old.member_id].is_classic
    again = Client(world, "again", "t", instance_id="i")
    assert again.join() is ErrorCode.NONE
    assert set(world.group.members) == {"new", "again"}
    assert not world.group.members["again"].is_classic


def test_a_member_that_changes_to_the_classic_protocol_owes_no_consumer_heartbeat() -> None:
    """It must revoke partitions, and does so as a classic member does: by joining again."""
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join(), second.join()
    first.beat()
    world.join("a", protocols=subscription(0, 1, 2, 3))
    again = world.join("a", protocols=subscription(0, 1)).join
    assert (again.error_code, again.generation_id) == (ErrorCode.NONE, 3)
    world.sync("a", 3)
    for _ in range(14):
        world.advance(5_000)
        assert second.beat() is ErrorCode.NONE
        assert world.heartbeat("a", 3) is ErrorCode.NONE
    assert (numbers(second), world.state) == ([2, 3], "Stable")


def other_protocol(name: str, *owned: int) -> dict[str, bytes]:
    return {name: subscription(*owned)["cooperative-sticky"]}


def mixed_group(world: World) -> tuple[str, Client]:
    """A classic member and one of the consumer protocol, which share the partitions."""
    old = classic_group(world)
    new = Client(world, "new", "t")
    assert new.join() is ErrorCode.NONE
    settle(world, old, new)
    return old, new


def settle(world: World, old: str, new: Client) -> None:
    owned = [0, 1, 2, 3]
    for _ in range(4):
        joined = world.join(old, protocols=subscription(*owned)).join
        owned = partitions_in(world.sync(old, joined.generation_id).sync.assignment)
        new.beat()
    assert sorted([*owned, *numbers(new)]) == [0, 1, 2, 3]


@pytest.mark.parametrize("version", [3, 5])
def test_a_classic_member_without_a_common_protocol_is_refused(version: int) -> None:
    """With it the others could not become a classic group: there is no protocol to elect."""
    world = world_of()
    mixed_group(world)
    before = list(world.log.read(0))
    refused = world.join(client="odd", protocols=other_protocol("range"), version=version)
    assert refused.join.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert len(list(world.log.read(0))) == len(before)
    both = {**other_protocol("range"), **other_protocol("cooperative-sticky")}
    assert world.join(client="fits", protocols=both, version=3).join.error_code == ErrorCode.NONE


def test_members_that_an_older_version_let_in_keep_the_group_working() -> None:
    """Its log has classic members without a common protocol: the last consumer member leaves, the group stays."""
    world = world_of()
    old, new = mixed_group(world)
    group = world.group
    assert isinstance(group, ConsumerGroup)
    odd = group.members[old]
    side = odd.subscription.classic
    assert side is not None
    joined = world.join(client="second", protocols=subscription(), version=3).join
    second = group.members[joined.member_id]
    other = replace(side, protocols=tuple(other_protocol("range").items()))
    group.put(second, replace(second.subscription, classic=other))
    assert new.leave() is ErrorCode.NONE
    assert world.group is group
    assert set(group.members) == {old, second.member_id}
    assert new.member_id not in group.members
    world.advance(60_000)
    assert not group.members, "their sessions end as always"


@pytest.mark.parametrize("survives", [True, False])
def test_down_when_a_classic_instance_replaces_the_last_new_one(survives: bool) -> None:
    world = world_of()
    old = classic_group(world)
    new = Client(world, "new", "t", instance_id="i")
    assert new.join() is ErrorCode.NONE
    settle(world, old, new)
    kept = numbers(new)
    joined = world.join(instance="i", protocols=subscription(*kept), version=5).join
    assert joined.error_code == ErrorCode.NONE
    assert isinstance(world.group, ClassicGroup)
    assert set(world.group.members) == {old, joined.member_id}
    if survives:
        world = world.restart()
        assert isinstance(world.group, ClassicGroup)
    told = world.sync(joined.member_id, joined.generation_id).sync
    assert (told.error_code, sorted(partitions_in(told.assignment))) == (ErrorCode.NONE, kept)
    assert world.heartbeat(joined.member_id, joined.generation_id) is ErrorCode.NONE


def test_several_that_leave_at_once_leave_together() -> None:
    """With the first of them the group changes its protocol; the second must not stay behind."""
    world = world_of()
    old, new = mixed_group(world)
    stays = world.join(client="stays", protocols=subscription(), version=3).join.member_id
    codes = world.groups.classic.leave(
        GROUP, [MemberIdentity(member_id=new.member_id), MemberIdentity(member_id=old), MemberIdentity(member_id=old)]
    )
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert isinstance(world.group, ClassicGroup)
    assert set(world.group.members) == {stays}


def test_a_refused_join_does_not_replace_an_empty_consumer_group() -> None:
    world = world_of()
    new = Client(world, "new", "t")
    assert new.join() is ErrorCode.NONE
    assert new.leave() is ErrorCode.NONE
    group = world.group
    before = len(list(world.log.read(0)))
    assert world.join("unknown", protocols=subscription()).join.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(protocols={}).join.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.group is group
    assert len(list(world.log.read(0))) == before
