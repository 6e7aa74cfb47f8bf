from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import commit_request, group_broker, lone_member
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def groups() -> Iterator[Broker]:
    with group_broker(offset_metadata_max_bytes=100) as running:
        yield running


@pytest.fixture
def raw(groups: Broker) -> Iterator[Raw]:
    with Raw(groups.bootstrap) as client:
        yield client


def fetched(raw: Raw, group: str, partition: int = 0) -> tuple[int, int, str]:
    request = OffsetFetchRequest(
        group_id=group, topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(partition,)),)
    )
    found = raw.ask(ApiKey.OFFSET_FETCH, 7, request).topics[0].partitions[0]
    return found.committed_offset, found.committed_leader_epoch, found.metadata


def codes(answer: object) -> list[list[int]]:
    return [[each.error_code for each in topic.partitions] for topic in answer.topics]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version(raw: Raw, version: int) -> None:
    group = f"v{version}"
    request = commit_request(group, {("t", 0): 5, ("t", 1): 6}, metadata="é", leader_epoch=3 if version >= 6 else -1)
    assert codes(raw.ask(ApiKey.OFFSET_COMMIT, version, request)) == [[0, 0]]
    assert fetched(raw, group) == (5, 3 if version >= 6 else -1, "é")


def test_by_topic_id(raw: Raw) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    topic_id = raw.ask(ApiKey.METADATA, 12, asked).topics[0].topic_id
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=9, committed_metadata=None)
    request = OffsetCommitRequest(
        group_id="by id",
        member_id="",
        topics=(
            OffsetCommitRequestTopic(topic_id=topic_id, partitions=(part,)),
            OffsetCommitRequestTopic(topic_id=b"?" * 16, partitions=(part,)),
        ),
    )
    answer = raw.ask(ApiKey.OFFSET_COMMIT, 10, request)
    assert codes(answer) == [[0], [100]]
    assert [topic.topic_id for topic in answer.topics] == [topic_id, b"?" * 16]
    assert fetched(raw, "by id")[0] == 9


def test_what_does_not_exist_is_refused_alone(raw: Raw) -> None:
    request = commit_request("mixed", {("t", 0): 1, ("t", 3): 2, ("t", -1): 3, ("missing", 0): 4})
    assert codes(raw.ask(ApiKey.OFFSET_COMMIT, 9, request)) == [[0, 3, 3], [3]]
    assert fetched(raw, "mixed")[0] == 1


def test_members_and_strangers(raw: Raw) -> None:
    member_id = lone_member(raw, "members")
    offsets = {("t", 0): 1}

    def code(**fields: object) -> int:
        return codes(raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("members", offsets, **fields)))[0][0]

    assert code(member_id=member_id, generation_id_or_member_epoch=1) == 0
    assert code(member_id=member_id, generation_id_or_member_epoch=0) == 22
    assert code(member_id=member_id, generation_id_or_member_epoch=2**31 - 1) == 22
    assert code(member_id="stranger", generation_id_or_member_epoch=1) == 25
    assert code() == 25
    nobody = commit_request("nobody", offsets, generation_id_or_member_epoch=3)
    assert codes(raw.ask(ApiKey.OFFSET_COMMIT, 9, nobody)) == [[69]]
    assert codes(raw.ask(ApiKey.OFFSET_COMMIT, 8, nobody)) == [[22]], "older clients know no such code"


def test_long_metadata(raw: Raw) -> None:
    assert codes(raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("long", {("t", 0): 1}, metadata="x" * 101))) == [[12]]
    assert fetched(raw, "long")[0] == -1


def test_the_group_without_a_name_may_store_offsets(raw: Raw) -> None:
    assert codes(raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("", {("t", 0): 1}))) == [[0]]
    assert fetched(raw, "")[0] == 1


def test_nothing_to_commit(raw: Raw) -> None:
    assert raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("nothing", {})).topics == ()
