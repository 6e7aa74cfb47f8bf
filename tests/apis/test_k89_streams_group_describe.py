from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.testing import Broker
from tests.apis.group_kit import group_broker
from tests.apis.raw import Raw
from tests.apis.streams_group_kit import beat, describe, subtopology, topic, topology
from tests.apis.test_k88_streams_group_heartbeat import AT_ONCE


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with group_broker(**AT_ONCE) as running:
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.bootstrap) as client:
        yield client


def test_a_group_with_its_topology_and_its_members(raw: Raw) -> None:
    stateful = topology(
        subtopology("0", "t", changelogs=(topic("shown-changelog", cleanup_policy="compact"),)), epoch=3
    )
    joined = beat(raw, "shown", topology=stateful, process_id="p", rack_id="r")
    found = describe(raw, "shown")
    assert (found.error_code, found.group_state) == (0, "Stable")
    assert (found.group_epoch, found.assignment_epoch) == (joined.member_epoch, joined.member_epoch)
    assert found.topology.epoch == 3
    (part,) = found.topology.subtopologies
    assert (part.subtopology_id, part.source_topics) == ("0", ("t",))
    (store,) = part.state_changelog_topics
    assert (store.name, store.partitions) == ("shown-changelog", 3)
    assert [(each.key, each.value) for each in store.topic_configs] == [("cleanup.policy", "compact")]
    (member,) = found.members
    assert (member.member_id, member.process_id, member.rack_id, member.topology_epoch) == ("m", "p", "r", 3)
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.subtopology_id, each.partitions) for each in assignment.active_tasks] == [("0", (0, 1, 2))]
    assert not member.is_classic


def test_a_group_whose_topics_are_missing_shows_no_subtopologies(raw: Raw) -> None:
    beat(raw, "unready", topology=topology(subtopology("0", "nowhere")))
    found = describe(raw, "unready")
    assert (found.group_state, found.topology.subtopologies) == ("NotReady", None)


def test_groups_that_are_none(raw: Raw) -> None:
    found = describe(raw, "nothing")
    assert (found.error_code, found.error_message) == (69, "Group nothing not found.")


def test_an_empty_group(raw: Raw) -> None:
    beat(raw, "left")
    beat(raw, "left", epoch=-1)
    assert describe(raw, "left").group_state == "Empty"
