"""Places in a topic, as options name them: some of its partitions, and where in each of them."""

from __future__ import annotations

from ixion.cli.command import UsageError
from ixion.clients.cluster import Cluster
from ixion.clients.leaders import leader_of
from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import LATEST, list_offsets
from ixion.clients.starts import Start, parse_start


def place(text: str) -> Start:
    try:
        return parse_start(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def choose_partitions(cluster: Cluster, topic: str, wanted: list[int]) -> list[TopicPartition]:
    """The named ones, which must exist, or all."""
    if wanted:
        places = [TopicPartition(topic, number) for number in dict.fromkeys(wanted)]
        for each in places:
            leader_of(cluster, each, cluster.deadline())
        return places
    return [TopicPartition(topic, each.number) for each in cluster.topic(topic).partitions]


def find_ends(
    cluster: Cluster, places: dict[TopicPartition, int] | list[TopicPartition], read_committed: bool
) -> dict[TopicPartition, int]:
    return list_offsets(cluster, places, LATEST, read_committed=read_committed)
