"""A streams group as StreamsGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.member import StreamsMember
from ixion.broker.coordinators.group.streams.tasks import Numbers, Tasks, pairs
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages import k89_streams_group_describe as wire
from ixion.language.protocol.stored.streams_group import Subtopology, TopicInfo
from ixion.timer.turns import Steps


def described(group: StreamsGroup) -> Steps[wire.DescribedGroup]:
    state, epoch, assignment_epoch = group.state, group.epoch, group.assignment_epoch
    topology = yield from _topology(group)
    members: list[wire.Member] = []
    for member in list(group.members.values()):
        members.append(_member(member, group.target(member.member_id)))
        yield
    return wire.DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=state.value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        topology=topology,
        members=tuple(members),
    )


def not_described(group_id: str, code: ErrorCode, message: str | None = None) -> wire.DescribedGroup:
    return wire.DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=(),
    )


def _topology(group: StreamsGroup) -> Steps[wire.Topology | None]:
    topology, configured = group.topology, group.configured
    if topology is None:
        return None
    if configured is None or not configured.partitions:
        return wire.Topology(epoch=topology.epoch, subtopologies=None)
    subtopologies: list[wire.Subtopology] = []
    for each in topology.subtopologies:
        subtopologies.append(_subtopology(each, configured.partitions))
        yield
    return wire.Topology(epoch=topology.epoch, subtopologies=tuple(subtopologies))


def _subtopology(each: Subtopology, counts: Mapping[str, int]) -> wire.Subtopology:
    return wire.Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=each.source_topics,
        repartition_sink_topics=each.repartition_sink_topics,
        state_changelog_topics=_infos(each.state_changelog_topics, counts),
        repartition_source_topics=_infos(each.repartition_source_topics, counts),
    )


def _infos(infos: Iterable[TopicInfo], counts: Mapping[str, int]) -> tuple[wire.TopicInfo, ...]:
    return tuple(
        wire.TopicInfo(
            name=info.name,
            partitions=counts.get(info.name, info.partitions),
            replication_factor=info.replication_factor,
            topic_configs=tuple(wire.KeyValue(key=each.key, value=each.value) for each in info.topic_configs),
        )
        for info in infos
    )


def _member(member: StreamsMember, target: Tasks) -> wire.Member:
    profile = member.profile
    endpoint = profile.endpoint
    return wire.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        topology_epoch=profile.topology_epoch,
        process_id=profile.process_id,
        user_endpoint=None if endpoint is None else wire.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=tuple(wire.KeyValue(key=key, value=text) for key, text in profile.tags),
        task_offsets=(),
        task_end_offsets=(),
        # Tasks that it must revoke are its own until it has.
        assignment=_told(member.current.assigned.together(member.current.revoking)),
        target_assignment=_told(target),
        is_classic=False,
    )


def _told(tasks: Tasks) -> wire.Assignment:
    return wire.Assignment(
        active_tasks=_ids(tasks.active), standby_tasks=_ids(tasks.standby), warmup_tasks=_ids(tasks.warmup)
    )


def _ids(kind: Numbers) -> tuple[wire.TaskIds, ...]:
    return tuple(wire.TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in pairs(kind))
