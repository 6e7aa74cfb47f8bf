from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
from ixion.language.protocol.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest
from ixion.language.protocol.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import commit_request, group_broker, join
from tests.apis.raw import Raw
from tests.apis.share_group_kit import beat as share_beat
from tests.apis.streams_group_kit import (
    PLAIN,
    active,
    beat,
    codes,
    describe,
    has,
    subtopology,
    told,
    topic,
    topology,
)

AT_ONCE = {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with group_broker(**AT_ONCE, **{"group.streams.max.size": 5}) as running:
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.bootstrap) as client:
        yield client


def delete(raw: Raw, group: str) -> int:
    code: int = raw.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=(group,))).results[0].error_code
    return code


def topic_of(broker: Broker, name: str) -> tuple[int, dict[str, str]]:
    async def find(real: object) -> tuple[int, dict[str, str]]:
        image = real.parts.image.topics[name]  # type: ignore[attr-defined]
        return len(image.partitions), dict(image.config)

    return broker.call(find)


def test_one_member_gets_all_tasks_at_once(raw: Raw) -> None:
    joined = beat(raw, "one")
    assert (joined.error_code, joined.member_id, joined.member_epoch, joined.status) == (0, "m", 2, ())
    assert joined.heartbeat_interval_ms == 5_000
    assert active(joined) == {"0": (0, 1, 2)}
    assert (told(joined.standby_tasks), told(joined.warmup_tasks)) == ({}, {})
    quiet = beat(raw, "one", epoch=2)
    assert (quiet.error_code, quiet.member_epoch, active(quiet)) == (0, 2, None)
    left = beat(raw, "one", epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    assert beat(raw, "one", epoch=2).error_code == 25


def test_a_second_member_gets_tasks_once_they_are_revoked(raw: Raw) -> None:
    first = beat(raw, "two", "a")
    second = beat(raw, "two", "b")
    assert (second.member_epoch, active(second)) == (3, {}), "the others' tasks are not free"
    asked = beat(raw, "two", "a", first.member_epoch)
    assert (asked.member_epoch, active(asked)) == (2, {"0": (0, 1)})
    assert active(beat(raw, "two", "b", 3)) is None
    moved = beat(raw, "two", "a", 2, **has({"0": (0, 1)}))
    assert moved.member_epoch == 3
    assert active(beat(raw, "two", "b", 3)) == {"0": (2,)}
    assert describe(raw, "two").group_state == "Stable"


def test_internal_topics_are_made_before_the_first_answer(raw: Raw, broker: Broker) -> None:
    counting = topology(
        subtopology("0", "t", sinks=("made-repartition",)),
        subtopology(
            "1",
            repartition=(topic("made-repartition", cleanup_policy="delete", retention_ms="-1"),),
            changelogs=(topic("made-changelog", cleanup_policy="compact"),),
        ),
    )
    joined = beat(raw, "made", topology=counting)
    assert (joined.error_code, joined.status) == (0, ())
    assert active(joined) == {"0": (0, 1, 2), "1": (0, 1, 2)}
    assert topic_of(broker, "made-repartition") == (3, {"cleanup.policy": "delete", "retention.ms": "-1"})
    assert topic_of(broker, "made-changelog") == (3, {"cleanup.policy": "compact"})


def test_a_topic_that_cannot_be_made_is_explained(raw: Raw) -> None:
    bad = topology(subtopology("0", "t", changelogs=(topic("bad-changelog", cleanup_policy="squash"),)))
    joined = beat(raw, "cannot", topology=bad)
    assert (joined.error_code, codes(joined), active(joined)) == (0, [3], {})
    detail = joined.status[0].status_detail
    assert "bad-changelog" in detail
    assert "squash" in detail
    assert joined.heartbeat_interval_ms == 5_000, "clients give up after two intervals"
    assert describe(raw, "cannot").group_state == "NotReady"


def test_missing_source_topics_end_when_they_exist(raw: Raw, broker: Broker) -> None:
    joined = beat(raw, "later", topology=topology(subtopology("0", "t", "not-yet")))
    assert (codes(joined), active(joined)) == ([1], {})
    assert "not-yet" in joined.status[0].status_detail
    broker.create_topic("not-yet", 4)
    moved = beat(raw, "later", epoch=joined.member_epoch)
    assert (codes(moved), active(moved)) == ([], {"0": (0, 1, 2, 3)})


def test_topics_that_are_not_copartitioned(raw: Raw, broker: Broker) -> None:
    broker.create_topic("two-partitions", 2)
    joint = subtopology("0", "t", "two-partitions", together=(((0, 1), ()),))
    joined = beat(raw, "uneven", topology=topology(joint))
    assert (codes(joined), active(joined)) == ([2], {})
    assert joined.status[0].status_detail == "Topics are not copartitioned: t (3), two-partitions (2)"


def test_a_topic_that_grows_brings_tasks(raw: Raw, broker: Broker) -> None:
    broker.create_topic("grows", 1)
    joined = beat(raw, "grower", topology=topology(subtopology("0", "grows")))
    more = CreatePartitionsTopic(name="grows", count=2, assignments=None)
    request = CreatePartitionsRequest(topics=(more,), timeout_ms=5_000, validate_only=False)
    assert raw.ask(ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code == 0
    assert active(beat(raw, "grower", epoch=joined.member_epoch)) == {"0": (0, 1)}


def test_topologies_of_other_epochs(raw: Raw) -> None:
    other = topology(subtopology("0", "t"), subtopology("1", "t"))
    first = beat(raw, "topo", "a")
    assert beat(raw, "topo", "b", topology=other).error_code == 42, "same epoch, another topology, and a is there"
    newer = beat(raw, "topo", "b", topology=other.replace(epoch=1))
    assert newer.error_code == 0
    stale = beat(raw, "topo", "a", first.member_epoch)
    assert (codes(stale), active(stale)) == ([0], {}), "it does not know the new tasks"
    beat(raw, "topo", "a", first.member_epoch, **has({}))
    assert active(beat(raw, "topo", "b", newer.member_epoch)) == {"0": (0, 1, 2), "1": (0, 1, 2)}
    for member in "ab":
        beat(raw, "topo", member, -1)
    assert beat(raw, "topo", "a").error_code == 0, "an older topology"
    beat(raw, "topo", "a", -1)
    alone = beat(raw, "topo", "c", topology=PLAIN.replace(epoch=1))
    assert active(alone) == {"0": (0, 1, 2)}, "an empty group takes another topology"


def test_shutdown(raw: Raw) -> None:
    first, second = beat(raw, "down", "a"), beat(raw, "down", "b")
    asks = beat(raw, "down", "a", first.member_epoch, shutdown_application=True)
    assert 4 in codes(asks)
    assert 4 in codes(beat(raw, "down", "b", second.member_epoch))
    for member in "ab":
        beat(raw, "down", member, -1)
    assert codes(beat(raw, "down", "a")) == [], "the next run of the application begins anew"


def test_epochs_and_lost_answers(raw: Raw) -> None:
    first = beat(raw, "epochs", "a")
    beat(raw, "epochs", "b")
    assert beat(raw, "epochs", "a", 9).error_code == 110
    beat(raw, "epochs", "a", first.member_epoch)
    moved = beat(raw, "epochs", "a", first.member_epoch, **has({"0": (0, 1)}))
    assert moved.member_epoch == 3
    again = beat(raw, "epochs", "a", first.member_epoch, **has({"0": (0, 1)}))
    assert (again.error_code, again.member_epoch, active(again)) == (0, 3, {"0": (0, 1)}), "the answer was lost"
    assert beat(raw, "epochs", "a", first.member_epoch).error_code == 110, "without saying what it has"
    rejoined = beat(raw, "epochs", "a")
    assert (rejoined.error_code, active(rejoined)) == (0, {"0": (0, 1)})


def test_static_members(raw: Raw) -> None:
    joined = beat(raw, "static", "a", instance_id="one")
    assert beat(raw, "static", "b", instance_id="one").error_code == 111, "a has not left"
    assert beat(raw, "static", "a", -2, instance_id="one").error_code == 0
    back = beat(raw, "static", "b", instance_id="one")
    assert (back.error_code, active(back)) == (0, {"0": (0, 1, 2)})
    assert beat(raw, "static", "a", joined.member_epoch, instance_id="one").error_code == 82
    identity = MemberIdentity(member_id="", group_instance_id="one")
    removed = raw.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(group_id="static", members=(identity,)))
    assert removed.members[0].error_code == 0
    assert describe(raw, "static").group_state == "Empty"


def test_standby_tasks_are_a_setting_of_the_group(raw: Raw) -> None:
    from ixion.language.protocol.messages import k44_incremental_alter_configs as k44

    def alter(value: str) -> int:
        change = k44.AlterableConfig(name="streams.num.standby.replicas", config_operation=0, value=value)
        resource = k44.AlterConfigsResource(resource_type=32, resource_name="copies", configs=(change,))
        request = k44.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        code: int = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code
        return code

    assert alter("3") == 40, "group.streams.max.standby.replicas is 2"
    stateful = topology(subtopology("0", "t", changelogs=(topic("copies-changelog"),)))
    first = beat(raw, "copies", "a", topology=stateful)
    second = beat(raw, "copies", "b", topology=stateful)
    assert alter("1") == 0
    beat(raw, "copies", "a", first.member_epoch)
    moved = beat(raw, "copies", "a", first.member_epoch, **has({"0": (0, 1)}))
    answer = beat(raw, "copies", "b", second.member_epoch)
    assert (active(answer), told(answer.standby_tasks)) == ({"0": (2,)}, {"0": (0, 1)})
    assert told(moved.standby_tasks) == {"0": (2,)}


def test_endpoints(raw: Raw) -> None:
    from ixion.language.protocol.messages.k88_streams_group_heartbeat import Endpoint

    joined = beat(raw, "ends", user_endpoint=Endpoint(host="here", port=7_000))
    assert joined.endpoint_information_epoch == 1
    found = joined.partitions_by_user_endpoint
    assert [(each.user_endpoint.host, each.user_endpoint.port) for each in found] == [("here", 7_000)]
    assert [(each.topic, each.partitions) for each in found[0].active_partitions] == [("t", (0, 1, 2))]
    quiet = beat(raw, "ends", epoch=joined.member_epoch, endpoint_information_epoch=1)
    assert quiet.partitions_by_user_endpoint is None


def test_refused_requests(raw: Raw) -> None:
    assert beat(raw, "bad", "").error_code == 42
    assert beat(raw, " ").error_code == 42
    assert beat(raw, "bad", epoch=-3).error_code == 42
    assert beat(raw, "bad", topology=None).error_code == 42
    assert beat(raw, "bad", rebalance_timeout_ms=-1).error_code == 42
    assert beat(raw, "bad", **has({"0": (0,)})).error_code == 42, "a member that joins has none"
    assert beat(raw, "bad", epoch=1, topology=PLAIN).error_code == 42
    assert beat(raw, "bad", epoch=1).error_code == 69, "no such group"
    assert beat(raw, "bad", epoch=-1).error_code == 69
    assert beat(raw, "bad", topology=topology()).error_code == 130
    assert beat(raw, "bad", topology=topology(subtopology("0"))).error_code == 130
    assert beat(raw, "bad", topology=topology(subtopology("0", "t"), subtopology("0", "t"))).error_code == 130
    assert beat(raw, "bad", topology=topology(subtopology("0", "__consumer_offsets"))).error_code == 130
    assert beat(raw, "bad", topology=topology(subtopology("0", "a b"))).error_code == 130
    fixed = topology(subtopology("0", "t", changelogs=(topic("c", 3),)))
    assert beat(raw, "bad", topology=fixed).error_code == 130
    assert beat(raw, "bad", topology=topology(subtopology("0", "t", together=(((1,), ()),)))).error_code == 130
    assert delete(raw, "bad") == 69, "none of them has made a group"
    epoch = beat(raw, "bad").member_epoch
    assert beat(raw, "bad", epoch=epoch, **has({"0": (3,)})).error_code == 42
    assert beat(raw, "bad", epoch=epoch, **has({"1": (0,)})).error_code == 42
    assert beat(raw, "bad", epoch=epoch, active_tasks=()).error_code == 42, "all kinds of tasks or none"


def test_a_full_group(raw: Raw) -> None:
    for number in range(5):
        assert beat(raw, "full", f"m{number}").error_code == 0
    assert beat(raw, "full", "m5").error_code == 81
    assert beat(raw, "full", "m0").error_code == 0, "a member may join again"


def test_groups_of_other_types(raw: Raw) -> None:
    epoch = beat(raw, "taken").member_epoch
    assert join(raw, "taken", 5).error_code == 23
    assert share_beat(raw, "taken").error_code == 69
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="taken",
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        topic_partitions=(),
        subscribed_topic_names=("t",),
    )
    assert raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, consumer).error_code == 69
    assert raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, consumer.replace(group_id="cg")).error_code == 0
    assert beat(raw, "cg").error_code == 69
    assert describe(raw, "cg").error_code == 69
    wanted = ListGroupsRequest(states_filter=(), types_filter=("streams",))
    listed = {each.group_id: each for each in raw.ask(ApiKey.LIST_GROUPS, 5, wanted).groups}
    assert (listed["taken"].protocol_type, listed["taken"].group_type) == ("streams", "streams")
    assert "cg" not in listed
    assert delete(raw, "taken") == 68
    assert beat(raw, "taken", epoch=-1).error_code == 0
    assert epoch > 0
    assert join(raw, "taken", 5).error_code == 0, "a group without members may change its protocol"


def test_an_empty_classic_group_becomes_a_streams_group_with_its_offsets(raw: Raw) -> None:
    assert (
        raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("moved", {("t", 0): 7})).topics[0].partitions[0].error_code == 0
    )
    assert beat(raw, "moved").error_code == 0
    assert describe(raw, "moved").error_code == 0


def test_commits_name_the_member_epoch(raw: Raw) -> None:
    epoch = beat(raw, "commits").member_epoch

    def commit(member: str, member_epoch: int, partition: int = 0) -> int:
        asked = commit_request(
            "commits", {("t", partition): 1}, member_id=member, generation_id_or_member_epoch=member_epoch
        )
        code: int = raw.ask(ApiKey.OFFSET_COMMIT, 9, asked).topics[0].partitions[0].error_code
        return code

    assert commit("m", epoch) == 0
    assert commit("m", epoch + 1) == 113
    assert commit("other", epoch) == 25
    beat(raw, "commits", "b")
    beat(raw, "commits", "m", epoch)
    moved = beat(raw, "commits", "m", epoch, **has({"0": (0, 1)}))
    assert moved.member_epoch > epoch
    assert commit("m", epoch) == 0, "it has had the task since then"
    assert commit("m", epoch, 2) == 113, "not this one"


def test_streams_groups_need_streams_version_1(raw: Raw) -> None:
    def set_level(level: int, kind: int) -> None:
        update = FeatureUpdateKey(
            feature="streams.version", max_version_level=level, allow_downgrade=False, upgrade_type=kind
        )
        assert raw.ask(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(feature_updates=(update,))).error_code == 0

    set_level(0, 2)
    try:
        assert beat(raw, "level").error_code == 35
        assert describe(raw, "level").error_code == 35
    finally:
        set_level(1, 1)
    assert beat(raw, "level").error_code == 0
