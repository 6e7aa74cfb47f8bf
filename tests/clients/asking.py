"""What tests ask about a cluster, beside the client that they are about."""

from __future__ import annotations

from collections.abc import Mapping

from ixion.clients.admin import groups, offsets, topics
from ixion.clients.admin.groups import GroupDescription
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.cluster import Cluster
from ixion.clients.metadata import TopicPartition


def administrator(cluster: Cluster) -> AdminRunner:
    return AdminRunner(",".join(map(str, cluster.bootstrap)))


def describe_group(cluster: Cluster, group: str) -> GroupDescription:
    with administrator(cluster) as admin:
        return admin.run(groups.describe_groups, [group])[group]


def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> None:
    with administrator(cluster) as admin:
        admin.run(offsets.delete_records, before).check()


def add_partitions(cluster: Cluster, topic: str, total: int) -> None:
    with administrator(cluster) as admin:
        admin.run(topics.create_partitions, {topic: total}).check()
