"""The records of __consumer_offsets that a coordinator writes: key and value, as Kafka 3.9 writes them.

A value of None is a tombstone: compaction drops what was under the key before.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.offsets import NO_EXPIRY, Committed
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.storage import encode, encode_key
from ixion.language.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ixion.language.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from ixion.language.protocol.stored.record_types import RecordType

Entry = tuple[bytes, bytes | None]

OFFSET_VERSION: Final = 3
OFFSET_VERSION_WITH_EXPIRY: Final = 1  # the only one that has the field
GROUP_VERSION: Final = 3


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=partition[0], partition=partition[1])
    return encode_key(RecordType.OFFSET_COMMIT, key)


def offset_record(group_id: str, partition: TopicPartition, value: Committed) -> Entry:
    stored = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_ms,
        expire_timestamp=value.expire_ms,
    )
    version = OFFSET_VERSION if value.expire_ms == NO_EXPIRY else OFFSET_VERSION_WITH_EXPIRY
    return offset_key(group_id, partition), encode(stored, version)


def offset_tombstone(group_id: str, partition: TopicPartition) -> Entry:
    return offset_key(group_id, partition), None


def group_key(group_id: str) -> bytes:
    return encode_key(RecordType.GROUP_METADATA, GroupMetadataKey(group=group_id))


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> Entry:
    """The group with these assignments by member id, which the members may not have yet."""
    name = group.protocol_name
    members = tuple(
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=b"" if name is None else member.metadata(name),
            assignment=assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    )
    stored = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=name,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=members,
    )
    return group_key(group.group_id), encode(stored, GROUP_VERSION)


def group_tombstone(group_id: str) -> Entry:
    return group_key(group_id), None
