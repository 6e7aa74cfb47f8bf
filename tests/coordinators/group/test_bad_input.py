"""What strangers may try: many members, many groups, forged names, endless metadata. Nothing grows without bounds."""

from __future__ import annotations

from ixion.broker.coordinators.group.bounds import ID_BYTES, MOST_IDS
from ixion.broker.coordinators.group.classic.join import random_id
from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.coordinators.group.stored_offsets import OffsetReader
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.kit import GROUP, World, join, settle, whole

MB = 1_000_000


def test_ten_thousand_members_join_one_group() -> None:
    world = World(message_max_bytes=8 * MB)
    waiting = [world.join(client="c", rebalance_ms=60_000) for _ in range(10_000)]
    world.advance(10)
    leader = waiting[0].join
    assert (leader.generation_id, len(leader.members)) == (1, 10_000)
    assert all(answer.join.generation_id == 1 for answer in waiting)


def test_a_group_that_outgrows_the_log_is_refused_its_assignment_but_lives_on() -> None:
    world = World()
    settle(world, "a")
    world.log.fail = ErrorCode.MESSAGE_TOO_LARGE
    leader = world.join("a-1")
    refused = world.sync("a-1", leader.join.generation_id, {"a-1": bytes(2 * MB)})
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    again = world.join("a-1")
    assert world.sync("a-1", again.join.generation_id, {"a-1": b"small"}).sync.assignment == b"small"


def test_the_metadata_of_a_group_is_bounded() -> None:
    world = World(message_max_bytes=MB)
    answers = [world.join(client="c", protocols={"range": bytes(MB)}) for _ in range(20)]
    world.advance(10)
    assert [answer.code for answer in answers].count(ErrorCode.NONE) == 7
    assert 7 * MB < world.group.metadata_bytes < 8 * MB
    for member_id in list(world.group.members):
        world.leave(member_id)
    assert world.group.metadata_bytes == 0


def test_the_number_of_protocols_counts_too() -> None:
    world = World(message_max_bytes=MB)
    many = {f"protocol {number}": b"" for number in range(100_000)}
    assert world.join(protocols=many).code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert whole(world.groups.admin.list((), ()))[1] == (), "a refused request creates no group"


def test_all_groups_together_are_bounded() -> None:
    world = World()
    world.groups.rebalance.bounds.most_bytes = 5 * MB
    codes = [
        join(world, group=f"g{number}", instance="i", protocols={"range": bytes(MB - 1_000)}).given
        for number in range(8)
    ]
    assert [code is None for code in codes] == [True] * 5 + [False] * 3, "five wait for others to join"
    assert {code.error_code for code in codes[5:]} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert world.groups.rebalance.bounds.held_bytes > 4 * MB
    world.advance(400_000)
    assert world.groups.rebalance.bounds.held_bytes == 0, "their sessions have ended"
    assert join(world, group="g9", instance="i").waits


def test_ids_that_are_given_out_are_bounded() -> None:
    world = World()
    world.groups.rebalance.bounds.most_ids = 10
    answers = [join(world, group=f"g{number}", version=5, session_ms=6_000) for number in range(12)]
    codes = [answer.code for answer in answers]
    assert join(world, group="g0", version=5, member_id=answers[0].join.member_id).waits, (
        "a member with an id may come back"
    )
    assert codes == [ErrorCode.MEMBER_ID_REQUIRED] * 10 + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    world.advance(7_000)
    assert join(world, group="g12", version=5).code is ErrorCode.MEMBER_ID_REQUIRED
    assert world.groups.rebalance.bounds.ids == 1
    world.restart()
    assert world.groups.rebalance.bounds.ids == 0


def test_ids_of_long_names_are_short() -> None:
    """A client id of 32,767 bytes takes up to 131,000 in memory, and every id that is given out would have it."""
    name = "\N{HATCHING CHICK}" + "x" * 32_000
    made = random_id(name)
    assert made.startswith(name[:200])
    assert len(made) < 300
    assert random_id("c")[:2] == "c-"
    assert ID_BYTES * MOST_IDS <= 128 << 20


def test_long_names_of_members_count_as_memory() -> None:
    world = World()
    join(world, group="g", instance="i", client="\N{HATCHING CHICK}" + "x" * 32_000)
    assert world.groups.rebalance.bounds.held_bytes > 120_000
    world.advance(400_000)
    assert world.groups.rebalance.bounds.held_bytes == 0


def test_names_of_groups_have_a_budget_in_bytes() -> None:
    world = World()
    world.groups.shards.most_names_bytes = 600_000
    names = [f"\N{HATCHING CHICK}{number}" + "x" * 32_000 for number in range(6)]
    codes = [join(world, group=name, version=5).code for name in names]
    assert codes == [ErrorCode.MEMBER_ID_REQUIRED] * 4 + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert join(world, group="short", version=5).code is ErrorCode.MEMBER_ID_REQUIRED
    world.advance(11_000)
    world.groups.expire_offsets()
    world.run()
    assert join(world, group=names[5], version=5).code is ErrorCode.MEMBER_ID_REQUIRED, "the others are gone"
    assert world.groups.shards.names_bytes < 200_000


def test_unused_groups_are_forgotten() -> None:
    world = World()
    for number in range(1_000):
        join(world, group=f"g{number}", version=5)
    assert len(whole(world.groups.admin.list((), ()))[1]) == 1_000
    world.advance(11_000)
    world.groups.expire_offsets()
    world.run()
    assert whole(world.groups.admin.list((), ()))[1] == ()
    assert world.log.next_offset == 0, "nothing was ever written of them"


def test_ids_that_are_given_out_and_never_used_are_forgotten() -> None:
    world = World()
    settle(world, "a", session_ms=1_000_000)
    for _ in range(500):
        world.join(client="ghost", version=5, session_ms=6_000)
    assert len(world.group.pending_members) == 500
    world.advance(7_000)
    assert world.group.pending_members == set()
    assert world.state == "Stable"


def test_strangers_change_nothing() -> None:
    world = World()
    settle(world, "a")
    before = world.log.next_offset
    codes: list[list[ErrorCode]] = []
    for member, generation in (
        ("", -1),
        ("x", 1),
        ("a-1", 2**31 - 1),
        ("a-1", -(2**31)),
        ("A-1", 1),
        ("x" * 30_000, 1),
    ):
        world.sync(member, generation, {"a-1": b"stolen"})
        world.heartbeat(member, generation)
        world.groups.commits.commit(
            Committer(GROUP, member, None, generation), [Wanted(("t", 0), 9, -1, "")], codes.append
        )
        if member != "a-1":
            world.leave(member)
            world.join(member or "y")
    assert all(code != [ErrorCode.NONE] for code in codes)
    assert (world.state, world.log.next_offset, list(world.group.members)) == ("Stable", before, ["a-1"])
    assert world.sync("a-1", 1).sync.assignment == b"of a-1"


def test_any_offset_is_kept_as_it_is() -> None:
    """Kafka checks none either: what an offset means is the client's affair."""
    world = World()
    codes: list[list[ErrorCode]] = []
    wanted = [Wanted(("t", place), offset, -1, None) for place, offset in enumerate((0, -1, -(2**63), 2**63 - 1))]
    world.groups.commits.commit(Committer(GROUP), wanted, codes.append)
    assert codes == [[ErrorCode.NONE] * 4]
    found = whole(world.restart().groups.offsets.fetch(OffsetReader(GROUP), None, require_stable=False))
    assert isinstance(found, list)
    assert [committed.offset for _, committed, _ in found if committed] == [0, -1, -(2**63), 2**63 - 1]
