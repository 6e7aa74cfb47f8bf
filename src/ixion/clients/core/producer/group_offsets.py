"""The offsets of a group that a transaction commits."""

from __future__ import annotations

from typing import NamedTuple

from ixion.clients.metadata import TopicPartition


class GroupMetadata(NamedTuple):
    """The group whose offsets a transaction commits, and the member that commits; the group id alone is enough."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class GroupOffsets(NamedTuple):
    group: GroupMetadata
    offsets: dict[TopicPartition, int]
