"""The records of __consumer_offsets that make up a streams group: types 17 and 19 to 23.

17 the group's epoch, 19 a member, 20 the assignment epoch, 21 a member's target, 22 what a member has, 23 the topology.
"""

from __future__ import annotations

from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.member import Profile, StreamsMember
from ixion.broker.coordinators.group.streams.reconcile import Current
from ixion.broker.coordinators.group.streams.states import MemberState
from ixion.broker.coordinators.group.streams.tasks import Numbers, Task, Tasks, numbers_of, pairs
from ixion.broker.coordinators.group.streams.topology import Topology
from ixion.language.protocol.storage import encode, encode_key
from ixion.language.protocol.stored import streams_group as table
from ixion.language.protocol.stored.record_types import RecordType

Entry = tuple[bytes, bytes | None]


def epoch_record(group: StreamsGroup) -> Entry:
    value = table.StreamsGroupMetadataValue(
        epoch=group.epoch,
        metadata_hash=group.metadata_hash,
        validated_topology_epoch=group.validated_epoch,
        last_assignment_configs=tuple(table.LastAssignmentConfig(key=key, value=text) for key, text in group.config),
    )
    return _epoch_key(group.group_id), encode(value, 0)


def assignment_epoch_record(group: StreamsGroup) -> Entry:
    value = table.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=group.assignment_epoch, assignment_timestamp=group.assigned_ms
    )
    return _assignment_epoch_key(group.group_id), encode(value, 0)


def topology_record(group_id: str, topology: Topology) -> Entry:
    return _topology_key(group_id), topology.data


def member_record(group_id: str, member: StreamsMember) -> Entry:
    profile = member.profile
    endpoint = profile.endpoint
    value = table.StreamsGroupMemberMetadataValue(
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        topology_epoch=profile.topology_epoch,
        process_id=profile.process_id,
        user_endpoint=None if endpoint is None else table.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=tuple(table.KeyValue(key=key, value=text) for key, text in profile.tags),
    )
    return _member_key(group_id, member.member_id), encode(value, 0)


def target_record(group_id: str, member_id: str, target: Tasks) -> Entry:
    value = table.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target(target.active), standby_tasks=_target(target.standby), warmup_tasks=_target(target.warmup)
    )
    return _target_key(group_id, member_id), encode(value, 0)


def target_tombstone(group_id: str, member_id: str) -> Entry:
    return _target_key(group_id, member_id), None


def current_record(group_id: str, member: StreamsMember) -> Entry:
    current = member.current
    assigned, revoking = current.assigned, current.revoking
    value = table.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        active_tasks=_with_epochs(current, assigned.active),
        standby_tasks=_current(assigned.standby),
        warmup_tasks=_current(assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(current, revoking.active),
        standby_tasks_pending_revocation=_current(revoking.standby),
        warmup_tasks_pending_revocation=_current(revoking.warmup),
    )
    return _current_key(group_id, member.member_id), encode(value, 0)


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_member_key(group_id, member_id), None),
    ]


def group_tombstones(group: StreamsGroup) -> list[Entry]:
    group_id = group.group_id
    records = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    keys = (_assignment_epoch_key(group_id), _topology_key(group_id), _epoch_key(group_id))
    return [*records, *((key, None) for key in keys)]


def profile_of(value: table.StreamsGroupMemberMetadataValue) -> Profile:
    endpoint = value.user_endpoint
    return Profile(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags=tuple((tag.key, tag.value) for tag in value.client_tags),
    )


def target_of(value: table.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    return Tasks(numbers_of(value.active_tasks), numbers_of(value.standby_tasks), numbers_of(value.warmup_tasks))


def current_of(value: table.StreamsGroupCurrentMemberAssignmentValue) -> Current:
    known = value.state in MemberState.__members__.values()
    since: dict[Task, int] = {
        (each.subtopology_id, number): epoch
        for each in (*value.active_tasks, *value.active_tasks_pending_revocation)
        for number, epoch in zip(each.partitions, each.assignment_epochs or (), strict=False)
        if epoch != value.member_epoch
    }
    return Current(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=Tasks(numbers_of(value.active_tasks), numbers_of(value.standby_tasks), numbers_of(value.warmup_tasks)),
        revoking=Tasks(
            numbers_of(value.active_tasks_pending_revocation),
            numbers_of(value.standby_tasks_pending_revocation),
            numbers_of(value.warmup_tasks_pending_revocation),
        ),
        since=since,
    )


def _target(kind: Numbers) -> tuple[table.TargetTaskIds, ...]:
    return tuple(table.TargetTaskIds(subtopology_id=name, partitions=numbers) for name, numbers in pairs(kind))


def _current(kind: Numbers) -> tuple[table.TaskIds, ...]:
    return tuple(table.TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in pairs(kind))


def _with_epochs(current: Current, kind: Numbers) -> tuple[table.TaskIds, ...]:
    return tuple(
        table.TaskIds(
            subtopology_id=name,
            partitions=numbers,
            assignment_epochs=tuple(current.since.get((name, number), current.epoch) for number in numbers),
        )
        for name, numbers in pairs(kind)
    )


def _epoch_key(group_id: str) -> bytes:
    return encode_key(RecordType.STREAMS_GROUP_METADATA, table.StreamsGroupMetadataKey(group_id=group_id))


def _assignment_epoch_key(group_id: str) -> bytes:
    key = table.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)
    return encode_key(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, key)


def _topology_key(group_id: str) -> bytes:
    return encode_key(RecordType.STREAMS_GROUP_TOPOLOGY, table.StreamsGroupTopologyKey(group_id=group_id))


def _member_key(group_id: str, member_id: str) -> bytes:
    key = table.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.STREAMS_GROUP_MEMBER_METADATA, key)


def _target_key(group_id: str, member_id: str) -> bytes:
    key = table.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, key)


def _current_key(group_id: str, member_id: str) -> bytes:
    key = table.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, key)
