"""Reads the records of __consumer_offsets back into a shard, in the order of the log.

Later records replace earlier ones under the same key; a tombstone removes. Records of a transaction are pending until
its marker is met.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import ClassicMember
from ixion.broker.coordinators.group.classic.states import EMPTY, STABLE
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.replay import CONSUMER_RECORDS
from ixion.broker.coordinators.group.offsets import Committed
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.share.replay import SHARE_RECORDS
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.replay import STREAMS_RECORDS
from ixion.language.protocol.flaws import UnsupportedVersionError
from ixion.language.protocol.storage import decode, decode_key, record_type
from ixion.language.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ixion.language.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from ixion.language.protocol.stored.record_types import RecordType
from ixion.language.records.batch import BatchView
from ixion.language.records.control import ControlType, control_type
from ixion.language.records.layout import NO_PRODUCER_ID
from ixion.language.records.record import Record

# Also 18, which Kafka 4.0 had for streams groups and no release since.
NOT_OURS: Final = frozenset({*RecordType, 18})


Apply = Callable[[GroupShard, bytes, bytes | None, int, int], None]  # the offset of the record; a producer id, or -1


def replay_control(shard: GroupShard, batch: BatchView) -> None:
    kind = control_type(batch)
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        shard.end_transaction(int(batch.producer_id), kind is ControlType.COMMIT)


def replay_record(shard: GroupShard, batch: BatchView, record: Record) -> None:
    """Raises, and changes nothing, if the record cannot be read or the rules refuse it."""
    key = record.key
    number = record_type(b"" if key is None else key)
    assert key is not None
    apply = APPLY.get(number)
    if apply is not None:
        producer_id = int(batch.producer_id) if batch.is_transactional else NO_PRODUCER_ID
        apply(shard, key, record.value, int(record.offset), producer_id)
    elif number in CONSUMER_RECORDS:
        CONSUMER_RECORDS[number](partial(_consumer_group, shard), key, record.value)
    elif number in SHARE_RECORDS:
        SHARE_RECORDS[number](partial(_share_group, shard), key, record.value)
    elif number in STREAMS_RECORDS:
        STREAMS_RECORDS[number](partial(_streams_group, shard), key, record.value)
    elif number not in NOT_OURS:
        raise UnsupportedVersionError("record key", number)


def _offset(shard: GroupShard, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
    named = decode_key(OffsetCommitKey, key)
    partition = (named.topic, named.partition)
    if value is None:
        shard.forget_offset(named.group, partition)
        return
    stored = decode(OffsetCommitValue, value)
    committed = Committed(
        stored.offset,
        stored.leader_epoch,
        stored.metadata,
        stored.commit_timestamp,
        stored.expire_timestamp,
        offset,
    )
    if producer_id == NO_PRODUCER_ID:
        shard.commit(named.group, partition, committed)
    else:
        shard.commit_pending(named.group, producer_id, partition, committed)


def _classic_group(shard: GroupShard, key: bytes, value: bytes | None, _offset: int, _producer_id: int) -> None:
    group_id = decode_key(GroupMetadataKey, key).group
    if value is None:
        if isinstance(shard.groups.get(group_id), ClassicGroup):
            del shard.groups[group_id]
        return
    shard.groups[group_id] = classic_group(group_id, decode(GroupMetadataValue, value))


def _consumer_group(shard: GroupShard, group_id: str, make: bool) -> ConsumerGroup | None:
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and not group.dead:
        return group
    if not make:
        return None
    made = shard.groups[group_id] = ConsumerGroup(group_id)
    return made


def _share_group(shard: GroupShard, group_id: str, make: bool) -> ShareGroup | None:
    group = shard.groups.get(group_id)
    if isinstance(group, ShareGroup) and not group.dead:
        return group
    if not make:
        return None
    made = shard.groups[group_id] = ShareGroup(group_id)
    return made


def _streams_group(shard: GroupShard, group_id: str, make: bool) -> StreamsGroup | None:
    group = shard.groups.get(group_id)
    if isinstance(group, StreamsGroup) and not group.dead:
        return group
    if not make:
        return None
    made = shard.groups[group_id] = StreamsGroup(group_id)
    return made


def classic_group(group_id: str, stored: GroupMetadataValue) -> ClassicGroup:
    """The group as it was after a rebalance: with members it was stable, without it was empty."""
    group = ClassicGroup(group_id, stored.current_state_timestamp, STABLE if stored.members else EMPTY)
    for each in stored.members:
        group.add(_member(each, stored))
    group.generation = stored.generation
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol or None
    group.leader_id = stored.leader or None
    group.find_subscribed()
    return group


def _member(stored: MemberMetadata, group: GroupMetadataValue) -> ClassicMember:
    session_ms = stored.session_timeout
    return ClassicMember(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=session_ms if stored.rebalance_timeout < 0 else stored.rebalance_timeout,
        session_timeout_ms=session_ms,
        protocol_type=group.protocol_type,
        protocols=((group.protocol or "", stored.subscription),),
        assignment=stored.assignment,
    )


APPLY: Final[dict[int, Apply]] = {
    RecordType.LEGACY_OFFSET_COMMIT: _offset,
    RecordType.OFFSET_COMMIT: _offset,
    RecordType.GROUP_METADATA: _classic_group,
}
