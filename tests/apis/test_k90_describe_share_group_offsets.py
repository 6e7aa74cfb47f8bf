"""Start offsets of share groups (90, 91, 92), and what they show of the states (84, 85)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k85_write_share_group_state import StateBatch
from ixion.testing import Broker
from tests.apis.filling import fill
from tests.apis.group_kit import group_broker
from tests.apis.raw import Raw
from tests.apis.share_group_kit import (
    alter,
    beat,
    delete_group,
    delete_offsets,
    describe,
    offsets,
    partitions,
    read_state,
    write_state,
)
from tests.apis.test_k76_share_group_heartbeat import topic_id


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with group_broker() as running:
        fill(running.bootstrap, "t", 0, 10)
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.bootstrap) as client:
        yield client


def starts(answer: object) -> list[tuple[int, int, int]]:
    return [
        (each.partition_index, each.start_offset, each.lag)
        for topic in answer.topics  # type: ignore[attr-defined]
        for each in topic.partitions
    ]


def test_offsets_are_described_altered_and_deleted(raw: Raw, broker: Broker) -> None:
    beat(raw, "g")
    assert starts(offsets(raw, "g")) == [(0, -1, -1), (1, -1, -1), (2, -1, -1)]
    ours = topic_id(broker)
    done = StateBatch(first_offset=4, last_offset=4, delivery_state=2, delivery_count=1)
    assert write_state(raw, "g", ours, 0, done, start=2, done=1) == 0
    assert starts(offsets(raw, "g", [("t", (0,))])) == [(0, 2, 7)]
    assert alter(raw, "g", "t", {0: 5}).error_code == 68
    assert delete_offsets(raw, "g", "t").error_code == 68
    beat(raw, "g", epoch=-1)
    altered = alter(raw, "g", "t", {0: 5, 9: 1})
    assert [each.error_code for each in altered.responses[0].partitions] == [0, 3]
    assert write_state(raw, "g", ours, 0, start=3) == 124, "the leader is fenced"
    state = read_state(raw, "g", ours, 0)
    assert (state.start_offset, state.state_batches) == (5, ())
    assert [each.error_code for each in delete_offsets(raw, "g", "t", "nothing").responses] == [0, 3]
    assert offsets(raw, "g").topics == ()
    assert read_state(raw, "g", ours, 0).error_code == 3


def test_a_deleted_group_has_no_states_left(raw: Raw, broker: Broker) -> None:
    beat(raw, "gone")
    beat(raw, "gone", epoch=-1)
    assert delete_group(raw, "gone") == 0
    assert read_state(raw, "gone", topic_id(broker), 1).error_code == 3
    assert (offsets(raw, "gone").error_code, offsets(raw, "gone").topics) == (0, ())


def test_altered_offsets_make_a_group(raw: Raw) -> None:
    assert alter(raw, "made", "nothing", {0: 1}).responses[0].partitions[0].error_code == 3
    assert describe(raw, "made").error_code == 69
    assert alter(raw, "made", "t", {1: 2}).error_code == 0
    assert describe(raw, "made").group_state == "Empty"
    assert starts(offsets(raw, "made")) == [(1, 2, 0)]
    assert partitions(beat(raw, "made")) == [(0, 1, 2)]
    assert alter(raw, " ", "t", {1: 2}).error_code == 69


def test_what_is_not_known(raw: Raw) -> None:
    beat(raw, "some")
    (topic,) = offsets(raw, "some", [("nothing", (0,))]).topics
    assert [each.error_code for each in topic.partitions] == [3]
    assert starts(offsets(raw, "some", [("t", (77,))])) == [(77, -1, -1)]


def test_a_start_beyond_the_end_is_no_negative_lag(raw: Raw) -> None:
    beat(raw, "beyond")
    beat(raw, "beyond", epoch=-1)
    alter(raw, "beyond", "t", {0: 13})
    assert starts(offsets(raw, "beyond", [("t", (0,))])) == [(0, 13, 0)]
