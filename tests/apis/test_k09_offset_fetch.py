from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, group_broker
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with group_broker() as running:
        running.create_topic("u", 1)
        with Raw(running.bootstrap) as client:
            offsets = {("t", 0): 5, ("t", 2): 7, ("u", 0): 9}
            client.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("g", offsets, metadata="m", leader_epoch=4))
            client.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("h", {("t", 1): 1}))
            yield client


def lines(topics: object) -> list[tuple[str, int, int, str, int]]:
    return [
        (topic.name, each.partition_index, each.committed_offset, each.metadata, each.error_code)
        for topic in topics  # type: ignore[attr-defined]
        for each in topic.partitions
    ]


@pytest.mark.parametrize("version", range(1, 8))
def test_one_group(raw: Raw, version: int) -> None:
    topics = (
        OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),
        OffsetFetchRequestTopic(name="missing", partition_indexes=(3,)),
    )
    answer = raw.ask(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(group_id="g", topics=topics))
    assert lines(answer.topics) == [("t", 0, 5, "m", 0), ("t", 1, -1, "", 0), ("missing", 3, -1, "", 0)]
    if version >= 5:
        assert [each.committed_leader_epoch for each in answer.topics[0].partitions] == [4, -1]
    if version >= 2:
        assert answer.error_code == 0


@pytest.mark.parametrize("version", range(2, 8))
def test_all_topics(raw: Raw, version: int) -> None:
    answer = raw.ask(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(group_id="g", topics=None))
    assert sorted(lines(answer.topics)) == [("t", 0, 5, "m", 0), ("t", 2, 7, "m", 0), ("u", 0, 9, "m", 0)]


def test_an_unknown_group_has_no_offsets(raw: Raw) -> None:
    answer = raw.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id="nobody", topics=None))
    assert (answer.error_code, answer.topics) == (0, ())


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups(raw: Raw, version: int) -> None:
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id="g", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
            ),
            OffsetFetchRequestGroup(group_id="h", topics=None),
            OffsetFetchRequestGroup(group_id="nobody", topics=None),
        ),
        require_stable=True,
    )
    answer = raw.ask(ApiKey.OFFSET_FETCH, version, request)
    assert [(group.group_id, group.error_code, lines(group.topics)) for group in answer.groups] == [
        ("g", 0, [("t", 0, 5, "m", 0), ("t", 1, -1, "", 0)]),
        ("h", 0, [("t", 1, 1, "", 0)]),
        ("nobody", 0, []),
    ]


def test_by_topic_id(raw: Raw) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    topic_id = raw.ask(ApiKey.METADATA, 12, asked).topics[0].topic_id
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id="g",
                topics=(
                    OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(0,)),
                    OffsetFetchRequestTopics(topic_id=b"?" * 16, partition_indexes=(0,)),
                ),
            ),
            OffsetFetchRequestGroup(group_id="h", topics=None),
        )
    )
    first, second = raw.ask(ApiKey.OFFSET_FETCH, 10, request).groups
    assert [(each.topic_id, lines([each])) for each in first.topics] == [
        (topic_id, [("", 0, 5, "m", 0)]),
        (b"?" * 16, [("", 0, -1, "", 100)]),
    ]
    assert [each.topic_id for each in second.topics] == [topic_id]
