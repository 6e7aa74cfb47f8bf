"""Groups as administrators see them."""

from __future__ import annotations

from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.kit import GROUP, World, settle, subscription, whole


def delete(world: World) -> ErrorCode:
    told: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, told.append)
    world.run()
    (code,) = told
    return code


def test_a_group_is_listed_with_state_and_type() -> None:
    world = World()
    settle(world, "a")
    world.groups.commits.commit(Committer("simple"), [Wanted(("t", 0), 1, -1, None)], lambda codes: None)
    code, groups = whole(world.groups.admin.list((), ()))
    assert code is ErrorCode.NONE
    assert [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in groups] == [
        (GROUP, "consumer", "Stable", "classic"),
        ("simple", "", "Empty", "classic"),
    ]


def test_lists_are_filtered() -> None:
    world = World()
    settle(world, "a")

    def names(states: list[str], types: list[str]) -> list[str]:
        return [each.group_id for each in whole(world.groups.admin.list(states, types))[1]]

    assert names(["stable"], []) == names(["STABLE", "Empty"], ["Classic"]) == [GROUP]
    assert names(["Empty"], []) == names([], ["consumer"]) == names(["nonsense"], ["nonsense"]) == []


def test_a_stable_group_is_described_in_full() -> None:
    world = World()
    settle(world, "a", protocols={"range": subscription("t")})
    group = whole(world.groups.admin.describe(GROUP))
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == ("a-1", "a", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("t"), b"of a-1")


def test_between_generations_only_the_names_are_shown() -> None:
    world = World()
    settle(world, "a")
    world.join(client="b")
    group = whole(world.groups.admin.describe(GROUP))
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [(each.member_id, each.member_metadata) for each in group.members] == [("a-1", b""), ("b-2", b"")]


def test_a_group_that_is_not_there_is_dead() -> None:
    group = whole(World().groups.admin.describe("nobody"))
    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def test_only_empty_groups_are_deleted() -> None:
    world = World()
    assert delete(world) is ErrorCode.GROUP_ID_NOT_FOUND
    settle(world, "a")
    assert delete(world) is ErrorCode.NON_EMPTY_GROUP
    world.leave("a-1")
    assert delete(world) is ErrorCode.NONE
    assert delete(world) is ErrorCode.GROUP_ID_NOT_FOUND
    assert whole(world.restart().groups.admin.list((), ()))[1] == ()


def test_a_deleted_group_can_be_joined_again() -> None:
    world = World()
    settle(world, "a")
    world.leave("a-1")
    delete(world)
    waiting = world.join(client="b")
    world.advance(5)
    assert waiting.join.generation_id == 1


def test_a_deletion_that_cannot_be_stored_deletes_nothing() -> None:
    world = World()
    settle(world, "a")
    world.leave("a-1")
    world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
    assert delete(world) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.state == "Empty"
