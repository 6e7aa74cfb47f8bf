"""Consumer groups: heartbeats in, assignments out."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.consumer.assignment import count
from ixion.broker.coordinators.group.consumer.reconcile import Current
from ixion.broker.coordinators.group.consumer.states import MemberState
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinators.group.consumer_kit import Client, beat_all, group_of, numbers, world_of
from tests.coordinators.group.kit import GROUP, MemoryLog, MemoryTopics, World, whole


def test_the_first_member_gets_everything() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    assert first.join() is ErrorCode.NONE
    assert (first.epoch, numbers(first), world.state) == (2, [0, 1, 2, 3, 4, 5], "Stable")
    assert first.last is not None
    assert first.last.heartbeat_interval_ms == 5_000


def test_a_second_member_gets_partitions_only_when_the_first_has_revoked_them() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    second.join()
    assert (second.epoch, numbers(second), world.state) == (3, [], "Reconciling")
    first.clings = True
    first.beat()
    assert first.epoch == 2, "it has not let go"
    second.beat()
    assert numbers(second) == []
    first.clings = False
    first.owned = {partition for partition in first.owned if partition[1] < 3}
    first.beat()
    assert first.epoch == 3
    second.beat()
    assert (numbers(first), numbers(second), world.state) == ([0, 1, 2], [3, 4, 5], "Stable")


def test_a_member_that_leaves_leaves_its_partitions_to_the_others() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join(), second.join()
    beat_all(first, second)
    assert second.leave() is ErrorCode.NONE
    first.beat()
    assert (first.epoch, numbers(first)) == (4, [0, 1, 2, 3, 4, 5])
    assert second.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_out_leaves_an_empty_group() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    first.leave()
    assert world.state == "Empty"
    assert first.join() is ErrorCode.NONE
    assert first.epoch == 4


def test_a_silent_member_is_removed_after_the_session_timeout() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join(), second.join()
    beat_all(first, second)
    for _ in range(9):
        world.advance(5_000)
        first.beat()
    world.advance(1_000)
    first.beat()
    assert list(group_of(world).members) == ["a"]
    assert numbers(first) == [0, 1, 2, 3, 4, 5]


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    world = world_of()
    first, second = Client(world, "a", "t", rebalance_timeout_ms=10_000), Client(world, "b", "t")
    first.join(), second.join()
    first.clings = True
    for _ in range(4):
        first.beat()
        second.beat()
        world.advance(3_000)
    assert first.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    second.beat()
    assert numbers(second) == [0, 1, 2, 3, 4, 5]


def test_new_partitions_to_revoke_restart_the_rebalance_timeout() -> None:
    world = world_of()
    first, second, third = Client(world, "a", "t", rebalance_timeout_ms=10_000), *(Client(world, n, "t") for n in "bc")
    first.join(), second.join()
    first.clings = True
    first.beat()
    world.advance(6_000)
    third.join()
    first.let_go()
    first.clings = True
    first.beat()
    assert (first.epoch, len(first.owned)) == (2, 3), "it has revoked three, and must revoke one more"
    world.advance(6_000)
    assert first.beat() is ErrorCode.NONE
    world.advance(4_001)
    assert first.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_without_partitions_revokes_nothing() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join(), second.join()
    first.clings = True
    first.beat()
    assert first.send().member_epoch == first.epoch < second.epoch
    second.beat()
    assert numbers(second) == []


def test_an_answer_that_was_lost_is_given_again() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    epoch = first.epoch
    world.topics.put("t", 8)
    first.miss_an_answer()
    assert (first.epoch, len(first.owned)) == (epoch, 6)
    first.beat()
    assert (first.epoch, len(first.owned)) == (epoch + 1, 8)


def test_the_epoch_before_is_remembered_while_the_epoch_stays() -> None:
    at_five = Current(epoch=5, previous_epoch=4)
    assert at_five.moved(5, MemberState.STABLE, {}).previous_epoch == 4
    assert at_five.moved(6, MemberState.STABLE, {}).previous_epoch == 5


def test_an_epoch_from_the_past_or_the_future_is_fenced() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    for epoch in (1, 3, 99):
        assert first.send(member_epoch=epoch).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    first.topics = ("t", "u")
    first.beat(subscribed_topic_names=("t", "u"))
    first.beat(subscribed_topic_names=("t",))
    first.beat()
    assert first.epoch == 4
    assert first.send(member_epoch=2).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.beat() is ErrorCode.NONE


def test_a_member_that_missed_an_answer_may_be_one_epoch_behind() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    owned = first._owned()
    first.beat(subscribed_topic_names=("t", "u"))
    again = first.send(member_epoch=2, topic_partitions=owned)
    assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, 3)


def test_a_fenced_member_joins_again_with_nothing() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    first.beat(subscribed_topic_names=("t", "u"))
    stays = Client(world, "b", "t")
    stays.join()
    first.beat()
    assert numbers(stays) == [], "what it was asked for is with the first one still"
    assert first.join() is ErrorCode.NONE
    stays.beat()
    assert sorted([*numbers(first), *numbers(stays)]) == [0, 1, 2, 3, 4, 5]


def test_version_0_leaves_naming_to_the_broker() -> None:
    world = world_of()
    first = Client(world, "", "t")
    assert first.join(version=0) is ErrorCode.NONE
    assert first.member_id == "member-1"
    nameless = Client(world, "", "t")
    assert nameless.join(version=1) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "fields",
    [
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"subscribed_topic_names": None},
        {"instance_id": ""},
        {"rack_id": ""},
        {"member_epoch": -3},
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    world = world_of()
    assert Client(world, "a", "t").join(**fields) is ErrorCode.INVALID_REQUEST
    assert whole(world.groups.admin.list((), ()))[1] == ()


def test_a_join_that_sends_only_changes_can_be_repeated_in_full() -> None:
    """The client believes that it is a member. It must not get an error that ends it for good."""
    world = world_of()
    client = Client(world, "a", "t")
    assert client.join(rebalance_timeout_ms=-1, topic_partitions=None) is ErrorCode.UNKNOWN_MEMBER_ID
    assert client.join() is ErrorCode.NONE


def test_an_unknown_assignor_is_refused() -> None:
    assert Client(world_of(), "a", "t").join(server_assignor="sticky") is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_the_assignor_that_most_ask_for_is_taken() -> None:
    world = world_of()
    for name, assignor, taken in (
        ("a", "uniform", "uniform"),
        ("b", "range", "uniform"),
        ("c", "range", "range"),
    ):
        assert Client(world, name, "t", server_assignor=assignor).join() is ErrorCode.NONE
        assert whole(world.groups.consumer.describe("g")).assignor_name == taken


def test_a_group_is_limited_in_size() -> None:
    world = world_of(group_consumer_max_size=1)
    assert Client(world, "a", "t").join() is ErrorCode.NONE
    assert Client(world, "b", "t").join() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert Client(world, "a", "t").join() is ErrorCode.NONE


def test_strangers_are_not_members() -> None:
    world = world_of()
    stranger = Client(world, "x", "t")
    stranger.epoch = 4
    assert stranger.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    Client(world, "a", "t").join()
    assert stranger.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.leave() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_topic_that_grows_is_assigned_again() -> None:
    world = world_of()
    first = Client(world, "a", "u")
    first.join()
    assert numbers(first) == [0, 1]
    world.topics.put("u", 4)
    first.beat()
    assert numbers(first) == [0, 1, 2, 3]


def test_a_topic_may_come_after_its_reader() -> None:
    world = world_of()
    first = Client(world, "a", "later")
    first.join()
    assert first.owned == set()
    world.topics.put("later", 1)
    first.beat()
    assert first.owned == {("later", 0)}


def test_a_change_elsewhere_is_none_here() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    world.topics.put("unrelated", 9)
    before = world.log.next_offset
    first.beat()
    assert (first.epoch, world.log.next_offset) == (2, before)


def test_heartbeats_without_news_write_nothing() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    before = world.log.next_offset
    for _ in range(5):
        first.beat()
    assert world.log.next_offset == before


def test_a_member_without_topics_changes_nothing_for_the_others() -> None:
    world = world_of()
    first = Client(world, "b", "t", server_assignor="range")
    idle = Client(world, "c")
    first.join(), idle.join()
    assert (first.epoch, idle.epoch) == (2, 2)
    idle.leave()
    Client(world, "a").join()
    first.beat()
    assert (first.epoch, len(first.owned)) == (3, 6)


def test_a_first_member_without_topics_is_at_the_first_epoch_and_costs_no_computation() -> None:
    world = world_of(group_consumer_assignment_interval_ms=1_000)
    idle, first = Client(world, "a"), Client(world, "b", "t")
    idle.join()
    assert (idle.epoch, world.state, group_of(world).targets) == (1, "Stable", {})
    assert group_of(world.restart()).assignment_epoch == 1
    again = world_of(group_consumer_assignment_interval_ms=1_000)
    for client in (idle, first):
        client.world = again
        client.join()
    assert (first.epoch, len(first.owned)) == (2, 6), "there was no assignment that it could have to wait for"


def test_a_restart_of_the_broker_changes_nothing() -> None:
    world = world_of()
    first, second = Client(world, "a", "t"), Client(world, "b", subscribed_topic_regex="[tu]")
    first.join(), second.join()
    beat_all(first, second)
    later = world.restart()
    before = whole(world.groups.consumer.describe("g"))
    after = whole(later.groups.consumer.describe("g"))
    assert (after.group_state, after.group_epoch, after.assignment_epoch) == ("Stable", 3, 3)
    assert before.error_code == ErrorCode.NOT_COORDINATOR
    owned = set(first.owned), set(second.owned)
    for client in (first, second):
        client.world = later
    beat_all(first, second)
    assert (first.owned, second.owned) == owned


def test_a_deleted_group_is_gone_after_a_restart() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    codes: list[ErrorCode] = []
    world.groups.admin.delete("g", codes.append)
    first.leave()
    world.groups.admin.delete("g", codes.append)
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    assert whole(world.restart().groups.admin.list((), ()))[1] == ()


def test_what_cannot_be_stored_has_not_happened() -> None:
    world = world_of()
    first = Client(world, "a", "t")
    first.join()
    second = Client(world, "b", "t")
    world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
    assert second.join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(group_of(world).members) == ["a"]
    assert first.beat() is ErrorCode.NONE
    assert (first.epoch, len(first.owned)) == (2, 6)


def test_no_answer_leaves_before_the_change_is_stored() -> None:
    log = MemoryLog()
    world = World(log, MemoryTopics(t=6))
    log.hold = True
    told: list[ConsumerGroupHeartbeatResponse] = []
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    world.groups.consumer.heartbeat(request, Caller(version=1, client_id="c", host="/127.0.0.1"), told.append)
    world.run()
    assert told == []
    log.release()
    world.run()
    assert [(each.error_code, each.member_epoch) for each in told] == [(ErrorCode.NONE, 2)]


def test_a_group_is_described_and_listed() -> None:
    world = world_of()
    first = Client(world, "a", "t", rack_id="r", instance_id="i")
    first.join()
    group = whole(world.groups.consumer.describe("g"))
    (member,) = group.members
    assert (group.group_state, group.group_epoch, group.assignor_name) == ("Stable", 2, "uniform")
    assert (member.member_id, member.instance_id, member.rack_id, member.member_type) == ("a", "i", "r", 1)
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [
        ("t", (0, 1, 2, 3, 4, 5))
    ]
    assert member.assignment == member.target_assignment
    (listed,) = whole(world.groups.admin.list(["stable"], ["consumer"]))[1]
    assert (listed.group_id, listed.protocol_type, listed.group_type) == ("g", "consumer", "consumer")
    assert whole(world.groups.admin.describe("g")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert whole(world.groups.consumer.describe("nobody")).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_protocol_can_be_switched_off() -> None:
    world = world_of(group_coordinator_rebalance_protocols="classic")
    assert Client(world, "a", "t").join() is ErrorCode.UNSUPPORTED_VERSION


def test_a_member_that_revoked_and_must_revoke_more_keeps_its_epoch_and_gets_its_time_again() -> None:
    world = world_of()
    first = Client(world, "a", "t", rebalance_timeout_ms=20_000)
    first.join()
    Client(world, "b", "t").join()
    first.beat()
    world.advance(15_000)
    Client(world, "c", "t").join()
    first.clings = True
    first.beat()
    current = group_of(world).members["a"].current
    assert (current.epoch, count(current.assigned), count(current.revoking)) == (2, 2, 1), "of what it kept, one more"
    world.advance(15_000)
    assert first.beat() is ErrorCode.NONE
    world.advance(5_000)
    assert first.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_name_an_assignor_and_the_first_one_is_the_default() -> None:
    world = world_of(group_consumer_assignors="org.apache.kafka.coordinator.group.assignor.RangeAssignor")
    client = Client(world, "a", "t")
    assert client.join(server_assignor="uniform") is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert client.join(server_assignor="range") is ErrorCode.NONE
    assert Client(world, "b", "t").join() is ErrorCode.NONE
    assert whole(world.groups.consumer.describe(GROUP)).assignor_name == "range"
    both = world_of()
    assert Client(both, "a", "t").join(server_assignor="range") is ErrorCode.NONE
    later = both.restart(group_consumer_assignors="uniform")
    assert whole(later.groups.consumer.describe(GROUP)).assignor_name == "uniform", (
        "what is not offered any more is passed by"
    )
    assert Client(later, "b", "t").join() is ErrorCode.NONE
