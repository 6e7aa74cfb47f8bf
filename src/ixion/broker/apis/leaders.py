"""The current leader of a partition, for responses that redirect a client (KIP-951)."""

# This module is compiled: see setup.py.

from __future__ import annotations

from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.manager import ReplicaManager


def leader_of(image: ClusterImage, replicas: ReplicaManager, topic: str, number: int) -> tuple[int, int]:
    """(broker id, leader epoch); -1 for an unknown value.

    The local replica may know a newer leader than the image, because LeaderAndIsr comes before UpdateMetadata. If this
    broker no longer leads, and does not know the new leader yet, it does not return itself.
    """
    leader, epoch = -1, -1
    shown = image.partition(topic, number)
    if shown is not None:
        leader, epoch = shown.leader, shown.leader_epoch
    replica = replicas.partitions.get((topic, number))
    if replica is not None:
        if replica.leader_epoch > epoch:
            leader, epoch = replica.leader_id, replica.leader_epoch
        if leader == replica.node_id and not replica.leads:
            return -1, -1
    return leader, epoch


def addresses(image: ClusterImage, listener: str, brokers: set[int]) -> list[tuple[int, str, int, str | None]]:
    """(broker id, host, port, rack) of those brokers that the listener reaches."""
    found = []
    for number in sorted(brokers):
        broker = image.brokers.get(number)
        address = broker.endpoints.get(listener) if broker is not None else None
        if broker is not None and address is not None:
            found.append((number, address[0], address[1], broker.rack))
    return found
