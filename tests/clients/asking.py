"""Questions about a cluster (groups, offsets, topics) by an administrator.

Use it in tests of a producer or consumer, to check the result without the client under test.
"""

from __future__ import annotations

from collections.abc import Mapping

from ixion.clients.admin import group_offsets, groups, offsets, starts, topics
from ixion.clients.admin.groups import GroupDescription
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.metadata import TopicPartition


def describe_group(bootstrap: str, group: str) -> GroupDescription:
    with AdminRunner(bootstrap) as admin:
        return admin.run(groups.describe_groups, [group])[group]


def delete_records(bootstrap: str, before: Mapping[TopicPartition, int]) -> None:
    with AdminRunner(bootstrap) as admin:
        admin.run(offsets.delete_records, before).check()


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    with AdminRunner(bootstrap) as admin:
        admin.run(topics.create_partitions, {topic: total}).check()


def fetch_offsets(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    """All offsets that the group has committed."""
    with AdminRunner(bootstrap) as admin:
        found = admin.run(group_offsets.list_group_offsets, {group: None})[group]
        return {place: each.offset for place, each in found.items()}


def end_offsets(bootstrap: str, places: list[TopicPartition], *, read_committed: bool) -> dict[TopicPartition, int]:
    with AdminRunner(bootstrap) as admin:
        return admin.run(starts.offsets_at, places, offsets.LATEST, read_committed)
