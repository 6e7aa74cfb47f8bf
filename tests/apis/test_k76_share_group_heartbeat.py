from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.language.protocol.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ixion.language.protocol.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import commit_request, group_broker, join
from tests.apis.raw import Raw
from tests.apis.share_group_kit import beat, delete_group, describe, partitions, read_state
from tests.apis.test_settings_in_force import wait_until


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with group_broker(**{"group.share.assignment.interval.ms": 0}) as running:
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.bootstrap) as client:
        yield client


def topic_id(broker: Broker, name: str = "t") -> bytes:
    async def find(real: object) -> bytes:
        found: bytes = real.parts.image.topics[name].topic_id  # type: ignore[attr-defined]
        return found

    return broker.call(find)


def test_the_first_heartbeat_of_a_new_group_gets_its_partitions(raw: Raw, broker: Broker) -> None:
    joined = beat(raw, "new")
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
    assert joined.heartbeat_interval_ms == 5_000
    assert partitions(joined) == [(0, 1, 2)]
    state = read_state(raw, "new", topic_id(broker), 2)
    assert (state.error_code, state.start_offset, state.state_epoch) == (0, -1, 2), "initialized before the answer"
    quiet = beat(raw, "new", epoch=2)
    assert (quiet.error_code, quiet.member_epoch, quiet.assignment) == (0, 2, None)
    left = beat(raw, "new", epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    assert beat(raw, "new", epoch=2).error_code == 25


def test_epochs(raw: Raw) -> None:
    beat(raw, "epochs")
    other = beat(raw, "epochs", "other")
    assert other.member_epoch == 3
    assert beat(raw, "epochs", epoch=4).error_code == 110
    moved = beat(raw, "epochs", epoch=2)
    assert moved.member_epoch == 3
    assert partitions(moved) is not None
    again = beat(raw, "epochs", epoch=2)
    assert (again.error_code, partitions(again)) == (0, partitions(moved)), "the answer was lost"
    assert beat(raw, "epochs", epoch=1).error_code == 110


def test_more_members_than_partitions_share_them(raw: Raw) -> None:
    answers = [beat(raw, "many", f"m{number}") for number in range(5)]
    for number, answer in enumerate(answers):
        answers[number] = beat(raw, "many", f"m{number}", answer.member_epoch, ("t",))
    given = [part for answer in answers for numbers in partitions(answer) or [] for part in numbers]
    assert sorted(given.count(number) for number in range(3)) == [1, 2, 2]


def test_refused_requests(raw: Raw) -> None:
    assert beat(raw, "bad", "x" * 37).error_code == 42
    assert beat(raw, "bad", "").error_code == 42
    assert beat(raw, "bad", topics=()).error_code == 42
    assert beat(raw, "bad", epoch=-2).error_code == 42
    assert beat(raw, "bad", epoch=1).error_code == 69, "no such group"
    assert beat(raw, "bad", epoch=-1).error_code == 69
    blank = ShareGroupHeartbeatRequest(group_id=" ", member_id="m", member_epoch=0, subscribed_topic_names=("t",))
    assert raw.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, blank).error_code == 42


def test_unknown_topics_wait_until_they_exist(raw: Raw, broker: Broker) -> None:
    joined = beat(raw, "waits", topics=("t", "later"))
    assert partitions(joined) == [(0, 1, 2)]
    broker.create_topic("later", 1)
    moved = beat(raw, "waits", epoch=joined.member_epoch)
    assert sorted(partitions(moved) or []) == [(0,), (0, 1, 2)]


def test_an_added_partition_begins_at_its_first_record(raw: Raw, broker: Broker) -> None:
    broker.create_topic("grows", 1)
    joined = beat(raw, "grows", topics=("grows",))
    more = CreatePartitionsTopic(name="grows", count=2, assignments=None)
    request = CreatePartitionsRequest(topics=(more,), timeout_ms=5_000, validate_only=False)
    assert raw.ask(ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code == 0
    moved = beat(raw, "grows", epoch=joined.member_epoch)
    assert partitions(moved) == [(0, 1)]
    ours = topic_id(broker, "grows")
    assert [read_state(raw, "grows", ours, number).start_offset for number in (0, 1)] == [-1, 0]


def test_groups_of_other_types(raw: Raw) -> None:
    beat(raw, "taken")
    assert join(raw, "taken", 5).error_code == 23
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="taken",
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        topic_partitions=(),
        subscribed_topic_names=("t",),
    )
    assert raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, consumer).error_code == 69
    answer = raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("taken", {("t", 0): 1}))
    assert answer.topics[0].partitions[0].error_code == 69
    assert raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, consumer.replace(group_id="cg")).error_code == 0
    assert beat(raw, "cg").error_code == 69
    assert describe(raw, "cg").error_code == 69


def test_a_full_group(broker: Broker) -> None:
    with group_broker(**{"group.share.max.size": 1}) as small, Raw(small.bootstrap) as raw:
        beat(raw, "full")
        assert beat(raw, "full", "second").error_code == 81
        assert beat(raw, "full").error_code == 0, "a member may join again"


def test_share_groups_need_share_version_1(raw: Raw) -> None:
    def set_level(level: int, kind: int) -> None:
        update = FeatureUpdateKey(
            feature="share.version", max_version_level=level, allow_downgrade=False, upgrade_type=kind
        )
        request = UpdateFeaturesRequest(feature_updates=(update,))
        assert raw.ask(ApiKey.UPDATE_FEATURES, 2, request).error_code == 0

    beat(raw, "level")
    set_level(0, 2)
    try:
        assert beat(raw, "level").error_code == 35
        assert describe(raw, "level").error_code == 35
    finally:
        set_level(1, 1)
    assert beat(raw, "level").error_code == 0


def test_a_group_survives_a_restart(tmp_path: Path) -> None:
    with group_broker(**{"log.dirs": tmp_path / "log"}) as broker, Raw(broker.bootstrap) as raw:
        joined = beat(raw, "kept")
        before = describe(raw, "kept")
    with Broker({"log.dirs": tmp_path / "log"}) as broker, Raw(broker.bootstrap) as raw:
        after = describe(raw, "kept")
        assert after == before
        quiet = beat(raw, "kept", epoch=joined.member_epoch)
        assert (quiet.error_code, quiet.assignment) == (0, None)
        beat(raw, "kept", epoch=-1)
        assert delete_group(raw, "kept") == 0
    with Broker({"log.dirs": tmp_path / "log"}) as broker, Raw(broker.bootstrap) as raw:
        assert describe(raw, "kept").error_code == 69


def test_a_silent_member_is_removed() -> None:
    settings = {"group.share.session.timeout.ms": 200, "group.share.min.session.timeout.ms": 1}
    settings |= {"group.share.heartbeat.interval.ms": 100, "group.share.min.heartbeat.interval.ms": 1}
    with group_broker(**settings) as broker, Raw(broker.bootstrap) as raw:
        beat(raw, "silent")
        wait_until(lambda: describe(raw, "silent").group_state == "Empty")
