from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k11_join_group import JoinGroupRequestProtocol
from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import SUBSCRIPTION, Background, group_broker, join, join_request, lone_member
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def groups() -> Iterator[Broker]:
    with group_broker() as running:
        yield running


@pytest.fixture
def raw(groups: Broker) -> Iterator[Raw]:
    with Raw(groups.bootstrap) as client:
        yield client


@pytest.mark.parametrize("version", range(10))
def test_a_lone_member_in_every_version(raw: Raw, version: int) -> None:
    joined = join(raw, f"v{version}", version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert joined.member_id.startswith("raw-")
    (member,) = joined.members
    assert (member.member_id, member.metadata) == (joined.member_id, SUBSCRIPTION)
    if version >= 7:
        assert joined.protocol_type == "consumer"


@pytest.mark.parametrize("version", range(10))
def test_a_refusal_in_every_version(raw: Raw, version: int) -> None:
    refused = raw.ask(ApiKey.JOIN_GROUP, version, join_request("refused", "forged"))
    assert (refused.error_code, refused.member_id, refused.members) == (25, "forged", ())
    assert refused.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", range(4, 10))
def test_new_members_get_an_id_first(raw: Raw, version: int) -> None:
    told = raw.ask(ApiKey.JOIN_GROUP, version, join_request(f"first{version}"))
    assert told.error_code == 79
    assert told.member_id


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_returns_to_a_stable_group(raw: Raw, version: int) -> None:
    group = f"static{version}"
    first = join(raw, group, version, group_instance_id="i")
    again = join(raw, group, version, group_instance_id="i")
    assert (first.error_code, again.error_code) == (0, 0)
    assert first.member_id != again.member_id
    fenced = raw.ask(ApiKey.JOIN_GROUP, version, join_request(group, first.member_id, group_instance_id="i"))
    assert fenced.error_code == 82


def test_the_answer_waits_for_the_others(groups: Broker, raw: Raw) -> None:
    member_id = lone_member(raw, "two")
    background = Background()
    with Raw(groups.bootstrap, "other") as other:
        given = other.ask(ApiKey.JOIN_GROUP, 9, join_request("two"))
        waiting = background.ask(other, ApiKey.JOIN_GROUP, 9, join_request("two", given.member_id))
        # The first one is called to the rebalance by its heartbeat; here it comes by itself.
        first = raw.ask(ApiKey.JOIN_GROUP, 9, join_request("two", member_id))
        second = waiting.result(20)
    background.close()
    assert first.generation_id in (2, 3)
    if first.generation_id == second.generation_id:
        assert (len(first.members), len(second.members)) == (2, 0)


def test_a_request_that_waits_does_not_outlive_its_member(groups: Broker, raw: Raw) -> None:
    lone_member(raw, "gone")
    background = Background()
    with Raw(groups.bootstrap, "other") as other, Raw(groups.bootstrap) as third:
        given = other.ask(ApiKey.JOIN_GROUP, 5, join_request("gone"))
        waiting = background.ask(other, ApiKey.JOIN_GROUP, 5, join_request("gone", given.member_id))
        while third.ask(
            ApiKey.LEAVE_GROUP, 1, LeaveGroupRequest(group_id="gone", member_id=given.member_id)
        ).error_code:
            pass
        answer = waiting.result(20)
    background.close()
    assert answer.error_code == 25


@pytest.mark.parametrize("timeout_ms", [-1, 0, 5_999, 1_800_001, 2**31 - 1])
def test_session_timeouts_have_limits(raw: Raw, timeout_ms: int) -> None:
    assert raw.ask(ApiKey.JOIN_GROUP, 9, join_request("limits", session_timeout_ms=timeout_ms)).error_code == 26


@pytest.mark.parametrize("timeout_ms", [-(2**31), -1, 0, 2**31 - 1])
def test_any_rebalance_timeout_is_lived_with(raw: Raw, timeout_ms: int) -> None:
    joined = join(raw, f"timeout{timeout_ms}", 9, rebalance_timeout_ms=timeout_ms)
    assert (joined.error_code, joined.generation_id) == (0, 1)


def test_no_group_no_protocol(raw: Raw) -> None:
    assert raw.ask(ApiKey.JOIN_GROUP, 9, join_request("")).error_code == 24
    assert raw.ask(ApiKey.JOIN_GROUP, 9, join_request("none", protocols=())).error_code == 23
    assert raw.ask(ApiKey.JOIN_GROUP, 9, join_request("none", protocol_type="")).error_code == 23


def test_a_protocol_named_twice_counts_once(raw: Raw) -> None:
    twice = (
        JoinGroupRequestProtocol(name="range", metadata=b"first"),
        JoinGroupRequestProtocol(name="range", metadata=b"second"),
    )
    joined = join(raw, "twice", 3, protocols=twice)
    assert (joined.error_code, joined.members[0].metadata) == (0, b"first")


def test_metadata_that_no_log_could_store_is_refused(raw: Raw) -> None:
    assert join(raw, "beside", 3).error_code == 0
    large = (JoinGroupRequestProtocol(name="range", metadata=bytes(10_000_000)),)
    refused = join(raw, "large", 3, protocols=large)
    assert (refused.error_code, refused.members) == (81, ())
    assert join(raw, "large", 3).error_code == 0


@pytest.mark.parametrize("version", [3, 5])
def test_a_member_id_has_only_the_beginning_of_a_long_client_id(groups: Broker, version: int) -> None:
    """These versions have room for 32,767 bytes of a member id."""
    with Raw(groups.bootstrap, client_id="c" * 32_767) as client:
        joined = client.ask(ApiKey.JOIN_GROUP, version, join_request(f"long{version}"))
    assert re.fullmatch("c{255}-[0-9a-f-]{36}", joined.member_id)
