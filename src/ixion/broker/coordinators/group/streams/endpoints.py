"""Which partitions can be asked for where: the table that members with an endpoint give to those that query state."""

from __future__ import annotations

from collections.abc import Mapping

from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.tasks import Numbers
from ixion.language.protocol.messages import k88_streams_group_heartbeat as wire
from ixion.timer.turns import Steps


def endpoints_of(group: StreamsGroup) -> Steps[tuple[wire.EndpointToPartitions, ...]]:
    configured, topology = group.configured, group.topology
    if configured is None or topology is None or not configured.is_ready:
        return ()
    sources = {each.subtopology_id: topology.sources_of(each) for each in topology.subtopologies}
    yield
    found: list[wire.EndpointToPartitions] = []
    for member in list(group.members.values()):
        endpoint = member.profile.endpoint
        if endpoint is not None:
            assigned = member.current.assigned
            found.append(
                wire.EndpointToPartitions(
                    user_endpoint=wire.Endpoint(host=endpoint[0], port=endpoint[1]),
                    active_partitions=(yield from _partitions(assigned.active, sources, configured.partitions)),
                    standby_partitions=(yield from _partitions(assigned.standby, sources, configured.partitions)),
                )
            )
        yield
    return tuple(found)


def _partitions(
    kind: Numbers, sources: Mapping[str, list[str]], counts: Mapping[str, int]
) -> Steps[tuple[wire.TopicPartition, ...]]:
    found: list[wire.TopicPartition] = []
    for subtopology in sorted(kind):
        for topic in sources.get(subtopology, ()):
            numbers = tuple(sorted(number for number in kind[subtopology] if number < counts.get(topic, 0)))
            if numbers:
                found.append(wire.TopicPartition(topic=topic, partitions=numbers))
            yield
    return tuple(found)
