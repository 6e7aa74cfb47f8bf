"""Reads the assignment of a classic group's member from the coordinator's answer."""

from __future__ import annotations

from ixion.clients.metadata import TopicPartition


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions that the leader assigned to a member; none during a rebalance."""
    from ixion.language.protocol import storage
    from ixion.language.protocol.flaws import DecodeError
    from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolAssignment

    if not data:
        return ()
    try:
        assignment = storage.decode(ConsumerProtocolAssignment, bytes(data))
    except DecodeError:
        return ()  # not a consumer's format
    return tuple(
        TopicPartition(topic.topic, number) for topic in assignment.assigned_partitions for number in topic.partitions
    )
