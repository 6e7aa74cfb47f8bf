"""Which replica leads a partition.

The first live in-sync replica in the order of the assignment leads, so the preferred one whenever it can. If no in-sync
replica is alive, the partition has no leader, unless unclean elections are allowed: then any live replica leads, and
records that only the others had are lost.
"""

from __future__ import annotations

from collections.abc import Collection

from ixion.broker.metadata.image import PartitionImage


def elect_leader(partition: PartitionImage, live: Collection[int], unclean: bool = False) -> PartitionImage | None:
    """The partition with its new leader, in the next epoch; None if no replica can lead it."""
    for broker in partition.replicas:
        if broker in live and broker in partition.isr:
            isr = tuple(number for number in partition.isr if number in live)
            return partition._replace(leader=broker, leader_epoch=partition.leader_epoch + 1, isr=isr, offline=())
    if unclean:
        for broker in partition.replicas:
            if broker in live:
                return partition._replace(
                    leader=broker, leader_epoch=partition.leader_epoch + 1, isr=(broker,), offline=()
                )
    return None


def without_leader(partition: PartitionImage, offline: tuple[int, ...]) -> PartitionImage:
    return partition._replace(leader=-1, leader_epoch=partition.leader_epoch + 1, offline=offline)
