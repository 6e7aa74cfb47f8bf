"""What the leader of a classic group has assigned to a member, as the coordinator keeps it."""

from __future__ import annotations

from ixion.clients.metadata import TopicPartition


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """What the leader of a classic group gave to a member; nothing while it is rebalancing."""
    from ixion.protocol import storage
    from ixion.protocol.flaws import DecodeError
    from ixion.protocol.stored.consumer_protocol import ConsumerProtocolAssignment

    if not data:
        return ()
    try:
        assignment = storage.decode(ConsumerProtocolAssignment, bytes(data))
    except DecodeError:
        return ()  # a client's own format
    return tuple(
        TopicPartition(topic.topic, number) for topic in assignment.assigned_partitions for number in topic.partitions
    )
