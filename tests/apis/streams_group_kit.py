"""Requests of streams groups over a real connection."""

from __future__ import annotations

from typing import Any

from ixion.language.protocol.messages import k88_streams_group_heartbeat as k88
from ixion.language.protocol.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw

Tasks = dict[str, tuple[int, ...]]


def topic(name: str, partitions: int = 0, **config: str) -> k88.TopicInfo:
    settings = tuple(k88.KeyValue(key=key.replace("_", "."), value=value) for key, value in config.items())
    return k88.TopicInfo(name=name, partitions=partitions, replication_factor=0, topic_configs=settings)


def subtopology(
    name: str,
    *sources: str,
    changelogs: tuple[k88.TopicInfo, ...] = (),
    sinks: tuple[str, ...] = (),
    repartition: tuple[k88.TopicInfo, ...] = (),
    together: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (),
) -> k88.Subtopology:
    """`together`: copartition groups, as places of source topics and of repartition topics."""
    return k88.Subtopology(
        subtopology_id=name,
        source_topics=sources,
        source_topic_regex=(),
        state_changelog_topics=changelogs,
        repartition_sink_topics=sinks,
        repartition_source_topics=repartition,
        copartition_groups=tuple(
            k88.CopartitionGroup(source_topics=own, source_topic_regex=(), repartition_source_topics=theirs)
            for own, theirs in together
        ),
    )


def topology(*subtopologies: k88.Subtopology, epoch: int = 0) -> k88.Topology:
    return k88.Topology(epoch=epoch, subtopologies=subtopologies)


PLAIN = topology(subtopology("0", "t"))


def ids(tasks: Tasks) -> tuple[k88.TaskIds, ...]:
    return tuple(k88.TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in tasks.items())


def request(group: str, member: str = "m", epoch: int = 0, **fields: Any) -> k88.StreamsGroupHeartbeatRequest:
    """A member that joins sends everything."""
    given: dict[str, Any] = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "endpoint_information_epoch": 0,
    }
    if epoch == 0:
        given |= {"rebalance_timeout_ms": 10_000, "topology": PLAIN, "process_id": member}
        given |= {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
    return k88.StreamsGroupHeartbeatRequest(**(given | fields))


def has(active: Tasks, standby: Tasks | None = None) -> dict[str, Any]:
    """The fields of a member that reports its tasks."""
    return {"active_tasks": ids(active), "standby_tasks": ids(standby or {}), "warmup_tasks": ()}


def beat(raw: Raw, group: str, member: str = "m", epoch: int = 0, **fields: Any) -> Any:
    return raw.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request(group, member, epoch, **fields))


def told(kind: tuple[k88.TaskIds, ...] | None) -> Tasks | None:
    return None if kind is None else {each.subtopology_id: each.partitions for each in kind}


def active(answer: Any) -> Tasks | None:
    return told(answer.active_tasks)


def codes(answer: Any) -> list[int]:
    return [each.status_code for each in answer.status or ()]


def describe(raw: Raw, group: str) -> Any:
    asked = StreamsGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
    return raw.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, asked).groups[0]
