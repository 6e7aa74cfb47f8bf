from __future__ import annotations

from ixion.language.protocol.messages.k09_offset_fetch import OffsetFetchRequest
from ixion.language.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, group_broker, lone_member
from tests.apis.raw import Raw


def delete(raw: Raw, group: str, *partitions: tuple[str, int]) -> tuple[int, list[int]]:
    topics = tuple(
        OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(partition_index=number),))
        for name, number in partitions
    )
    answer = raw.ask(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=group, topics=topics))
    return answer.error_code, [each.error_code for topic in answer.topics for each in topic.partitions]


def test_offsets_of_topics_that_no_member_reads_are_deleted() -> None:
    with group_broker() as running, Raw(running.bootstrap) as raw:
        running.create_topic("u", 1)
        raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("g", {("t", 0): 1, ("t", 1): 2, ("u", 0): 3}))
        assert delete(raw, "g", ("t", 0), ("t", 9), ("missing", 0)) == (0, [0, 3, 3])
        lone_member(raw, "g")
        assert delete(raw, "g", ("t", 1), ("u", 0)) == (0, [86, 0])
        found = raw.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id="g", topics=None)).topics
        assert [(topic.name, [each.partition_index for each in topic.partitions]) for topic in found] == [("t", [1])]
        assert delete(raw, "nobody", ("t", 0)) == (69, [])
        assert delete(raw, "", ("t", 0)) == (24, [])
