"""The leader of a partition, for answers that send a client there (KIP-951)."""

from __future__ import annotations

from ixion.metadata.image import ClusterImage


def leader_of(image: ClusterImage, topic: str, number: int) -> tuple[int, int]:
    """(broker id, leader epoch); -1 for what is not known."""
    partition = image.partition(topic, number)
    return (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)


def addresses(image: ClusterImage, listener: str, brokers: set[int]) -> list[tuple[int, str, int, str | None]]:
    """(broker id, host, port, rack) of those brokers that the listener reaches."""
    found = []
    for number in sorted(brokers):
        broker = image.brokers.get(number)
        address = broker.endpoints.get(listener) if broker is not None else None
        if broker is not None and address is not None:
            found.append((number, address[0], address[1], broker.rack))
    return found
