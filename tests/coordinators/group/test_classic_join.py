"""Members join, sync, rejoin and leave."""

from __future__ import annotations

from ixion.config.group_settings import GROUP_INITIAL_REBALANCE_DELAY_MS
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.kit import World, settle, subscription


def test_a_lone_member_leads_and_gets_its_assignment() -> None:
    world = World()
    waiting = world.join(protocols={"range": b"m"})
    world.advance(5)
    joined = waiting.join
    assert (joined.error_code, joined.generation_id, joined.leader) == (ErrorCode.NONE, 1, joined.member_id)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert [(member.member_id, member.metadata) for member in joined.members] == [("c-1", b"m")]
    synced = world.sync("c-1", 1, {"c-1": b"all of it"}).sync
    assert (synced.error_code, synced.assignment, synced.protocol_name) == (ErrorCode.NONE, b"all of it", "range")
    assert world.state == "Stable"


def test_the_second_member_waits_for_the_first_to_rejoin() -> None:
    world = World()
    settle(world, "a")
    second = world.join(client="b")
    assert second.waits
    assert world.heartbeat("a-1", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    first = world.join("a-1")
    assert first.join.generation_id == second.join.generation_id == 2
    assert first.join.leader == second.join.leader == "a-1"
    assert [member.member_id for member in first.join.members] == ["a-1", "b-2"]
    assert second.join.members == ()
    follower = world.sync("b-2", 2)
    assert follower.waits
    world.sync("a-1", 2, {"a-1": b"0", "b-2": b"1"})
    assert follower.sync.assignment == b"1"


def test_members_that_come_during_the_initial_delay_share_one_generation() -> None:
    world = World(group_initial_rebalance_delay_ms=3000)
    first = world.join(client="a")
    world.advance(2000)
    second = world.join(client="b")
    world.advance(1500)
    assert first.waits, "a new member came, so the wait goes on"
    world.advance(2600)
    assert first.join.generation_id == second.join.generation_id == 1


def test_a_new_group_waits_a_tenth_of_a_second_by_default() -> None:
    """Kafka's three seconds are for a cluster that starts a fleet of consumers, not for one broker on a laptop."""
    world = World(group_initial_rebalance_delay_ms=GROUP_INITIAL_REBALANCE_DELAY_MS.default)
    first = world.join(client="a")
    world.advance(50)
    second = world.join(client="b")
    world.advance(51)
    assert first.waits, "a second member came, so the wait goes on for another span"
    world.advance(100)
    assert first.join.generation_id == second.join.generation_id == 1


def test_a_group_that_had_members_before_waits_one_initial_delay() -> None:
    """A member that comes a moment later starts another rebalance, as in Kafka."""
    world = World(group_initial_rebalance_delay_ms=3000)
    world.join(client="a")
    world.advance(3000)
    world.leave("a-1")
    first = world.join(client="b")
    world.advance(2000)
    world.join(client="d")
    world.advance(1001)
    assert first.join.generation_id == 3


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    world = World(group_initial_rebalance_delay_ms=3000)
    first = world.join(client="a", rebalance_ms=5000)
    for _ in range(4):
        world.advance(1200)
        world.join(client="more", rebalance_ms=5000)
    assert first.waits
    world.advance(300)
    assert first.join.generation_id == 1


def test_a_new_dynamic_member_gets_an_id_first() -> None:
    world = World()
    told = world.join(version=4).join
    assert (told.error_code, told.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "c-1")
    waiting = world.join("c-1", version=4)
    world.advance(5)
    assert waiting.join.generation_id == 1
    assert waiting.join.member_id == "c-1"


def test_an_unused_member_id_is_forgotten() -> None:
    world = World()
    world.join(version=4, session_ms=6000)
    world.advance(6100)
    assert world.join("c-1", version=4).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_ids_that_were_given_out() -> None:
    world = World()
    settle(world, "a")
    world.join(client="b", version=4)
    third = world.join(client="d")
    world.join("a-1")
    assert third.waits, "b-2 may still come"
    second = world.join("b-2", version=4)
    assert second.join.generation_id == third.join.generation_id == 2


def test_a_made_up_member_id_is_refused() -> None:
    world = World()
    assert world.join("forged").code is ErrorCode.UNKNOWN_MEMBER_ID
    settle(world, "a")
    assert world.join("forged").code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync("forged", 1).code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("forged", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("forged") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state == "Stable"


def test_protocols_that_not_all_support_are_refused() -> None:
    world = World()
    settle(world, "a", protocols={"range": b"", "sticky": b""})
    assert world.join(protocols={"roundrobin": b""}).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocol_type="connect").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocols={}).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocol_type="", group="other").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_with_most_votes_among_the_common_ones_wins() -> None:
    world = World()
    answers = [
        world.join(protocols={"x": b"", "y": b"", "z": b""}),
        world.join(protocols={"z": b"", "y": b""}),
        world.join(protocols={"y": b"", "z": b""}),
    ]
    world.advance(5)
    assert {answer.join.protocol_name for answer in answers} == {"y"}


def test_a_protocol_that_is_named_twice_counts_once() -> None:
    world = World()
    first = world.join(client="a", protocols=[("range", b"1"), ("sticky", b""), ("range", b"2")])
    second = world.join(client="b", protocols={"sticky": b"", "range": b""})
    third = world.join(client="d", protocols={"range": b""})
    world.advance(5)
    assert {each.join.protocol_name for each in (first, second, third)} == {"range"}
    assert [member.metadata for member in first.join.members] == [b"1", b"", b""], "the first of the name"


def test_session_timeouts_have_limits() -> None:
    world = World()
    for session_ms in (-1, 0, 5_999, 1_800_001, 2**31 - 1):
        assert world.join(session_ms=session_ms).code is ErrorCode.INVALID_SESSION_TIMEOUT
    assert world.join(session_ms=6_000).waits


def test_a_follower_that_rejoins_unchanged_gets_the_generation_at_once() -> None:
    world = World()
    settle(world, "a", "b")
    again = world.join("b-2").join
    assert (again.error_code, again.generation_id, again.leader) == (ErrorCode.NONE, 1, "a-1")
    assert world.state == "Stable"
    assert world.sync("b-2", 1).sync.assignment == b"of b-2"


def test_the_leader_rejoins_to_rebalance() -> None:
    world = World()
    settle(world, "a", "b")
    leader = world.join("a-1")
    assert leader.waits
    assert world.heartbeat("b-2", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("b-2")
    assert leader.join.generation_id == 2


def test_a_member_that_missed_the_answer_to_its_join_gets_it_again() -> None:
    world = World()
    waiting = world.join()
    world.advance(5)
    again = world.join("c-1").join
    assert again == waiting.join


def test_a_changed_subscription_starts_a_rebalance() -> None:
    world = World()
    settle(world, "a", "b")
    changed = world.join("b-2", protocols={"range": subscription("u")})
    assert changed.waits
    assert world.state == "PreparingRebalance"


def test_a_member_that_waits_for_an_assignment_must_rejoin_when_another_joins() -> None:
    world = World()
    first, second = world.join(client="a"), world.join(client="b")
    world.advance(5)
    assert (first.code, second.code) == (ErrorCode.NONE, ErrorCode.NONE)
    waiting = world.sync("b-2", 1)
    world.join(client="d")
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_that_is_asked_again_takes_the_place_of_the_one_before() -> None:
    world = World()
    world.join(client="a"), world.join(client="b")
    world.advance(5)
    lost, again = world.sync("b-2", 1), world.sync("b-2", 1)
    assert lost.code is ErrorCode.REBALANCE_IN_PROGRESS
    world.sync("a-1", 1, {"b-2": b"two"})
    assert again.sync.assignment == b"two"


def test_a_member_that_only_got_an_id_may_leave_with_it() -> None:
    world = World()
    settle(world, "a")
    assert world.join(client="b", version=4).code is ErrorCode.MEMBER_ID_REQUIRED
    waiting = world.join("a-1")
    assert waiting.waits, "b-2 may still come"
    assert world.leave("b-2") is ErrorCode.NONE
    assert waiting.join.generation_id == 2
    assert world.leave("b-2") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_of_another_generation_or_protocol_is_refused() -> None:
    world = World()
    settle(world, "a")
    assert world.sync("a-1", 0).code is ErrorCode.ILLEGAL_GENERATION
    assert world.sync("a-1", 2).code is ErrorCode.ILLEGAL_GENERATION
    assert world.sync("a-1", 1, protocol_name="sticky").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync("a-1", 1, protocol_type="connect").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync("a-1", 1, protocol_name="range", protocol_type="consumer").code is ErrorCode.NONE


def test_members_left_out_of_the_assignment_get_an_empty_one() -> None:
    world = World()
    world.join(client="a"), world.join(client="b")
    world.advance(5)
    waiting = world.sync("b-2", 1)
    world.sync("a-1", 1, {"a-1": b"x", "stranger": b"y"})
    assert waiting.sync.assignment == b""
    assert waiting.code is ErrorCode.NONE


def test_leaving_rebalances_the_members_that_stay() -> None:
    world = World()
    settle(world, "a", "b")
    assert world.leave("a-1") is ErrorCode.NONE
    assert world.heartbeat("b-2", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = world.join("b-2").join
    assert (rejoined.generation_id, rejoined.leader) == (2, "b-2")


def test_the_last_to_leave_empties_the_group() -> None:
    world = World()
    settle(world, "a")
    world.leave("a-1")
    assert world.state == "Empty"
    assert world.group.generation == 2
    assert world.heartbeat("a-1", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_while_waiting_to_join_answers_the_join() -> None:
    world = World()
    settle(world, "a")
    waiting = world.join(client="b")
    world.leave("b-2")
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_while_waiting_for_an_assignment_answers_the_sync() -> None:
    world = World()
    world.join(client="a"), world.join(client="b")
    world.advance(5)
    waiting = world.sync("b-2", 1)
    world.leave("b-2")
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_is_limited_in_size() -> None:
    world = World(group_max_size=2)
    settle(world, "a", "b")
    refused = world.join(client="d").join
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert world.state == "Stable"
    assert world.join("b-2").code is ErrorCode.NONE


def test_a_group_that_is_loaded_over_its_limit_sheds_the_members_that_come_last() -> None:
    world = World()
    settle(world, "a", "b", "d")
    later = world.restart(group_max_size=2)
    assert later.state == "PreparingRebalance"
    lost, second = later.join("a-1"), later.join("d-3")
    first = later.join("a-1")
    assert lost.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert first.waits, "a member that has joined may ask again"
    assert later.join("b-2").code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(later.group.members) == ["a-1", "d-3"]
    assert first.join.generation_id == second.join.generation_id == 2


def test_an_id_that_was_given_out_is_taken_back_where_there_is_no_room() -> None:
    world = World(group_max_size=2)
    settle(world, "a")
    for client in ("b", "d"):
        assert world.join(client=client, version=4).code is ErrorCode.MEMBER_ID_REQUIRED
    first, second = world.join("a-1"), world.join("b-2", version=4)
    assert second.waits, "d-3 may still come"
    assert world.join("d-3", version=4).code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.join.generation_id == second.join.generation_id == 2


def test_a_group_without_a_name_is_refused() -> None:
    assert World().join(group="").code is ErrorCode.INVALID_GROUP_ID


def test_a_group_is_upgraded_from_one_protocol_to_another_by_two_rounds_of_restarts() -> None:
    """As users go from eager to cooperative: first everybody offers both, then the old one is dropped."""
    world = World()
    eager, both, cooperative = {"range": b""}, {"cooperative": b"", "range": b""}, {"cooperative": b""}

    def replace(leaver: str, stayer: str, offered: dict[str, bytes], stays_with: dict[str, bytes]) -> tuple[str, str]:
        """One member leaves and comes back with other protocols; its new id, and the protocol of the generation."""
        world.leave(leaver)
        world.join(stayer, protocols=stays_with)
        newcomer = world.join(client="n", protocols=offered)
        answer = world.join(stayer, protocols=stays_with)
        assert newcomer.join.generation_id == answer.join.generation_id
        return newcomer.join.member_id, newcomer.join.protocol_name or ""

    first, second = settle(world, "a", "b", protocols=eager)
    first, protocol = replace(first, second, both, eager)
    assert protocol == "range"
    assert world.join(client="c", protocols=cooperative).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    second, protocol = replace(second, first, both, both)
    assert protocol == "cooperative"
    _, protocol = replace(second, first, cooperative, both)
    assert protocol == "cooperative"
