"""Which positions must be compared with a new leader's log before they are read on (KIP-320). No I/O.

A leader that was elected uncleanly, or that lost its disk, may have other records at our offsets. So when the leader
epoch of a partition has changed since we last read, we ask the leader where the epoch of the last record that we read
ends in its log:

    read up to 120, the last record of epoch 4     the leader, now of epoch 6: epoch 4 ends at 150   go on at 120
                                                                                epoch 4 ends at 100   truncated: 100
"""

from __future__ import annotations

from ixion.clients.metadata import Topic, TopicPartition
from ixion.protocol.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


class Epochs:
    def __init__(self) -> None:
        self._read: dict[TopicPartition, int] = {}  # of the last record that was read
        self._checked: dict[TopicPartition, int] = {}  # the leader's, when the position was last known to be right

    def forget(self, partition: TopicPartition) -> None:
        """Its position is the caller's choice: there is nothing to compare."""
        self._read.pop(partition, None)
        self._checked.pop(partition, None)

    def read(self, partition: TopicPartition, epoch: int) -> None:
        self._read[partition] = epoch

    def confirm(self, partition: TopicPartition, leader_epoch: int) -> None:
        self._checked[partition] = leader_epoch

    def must_check(self, partition: TopicPartition, leader_epoch: int) -> bool:
        if leader_epoch < 0 or self._read.get(partition, -1) < 0:
            self._checked[partition] = leader_epoch  # an old broker, or nothing read yet
        return self._checked.setdefault(partition, leader_epoch) != leader_epoch

    def request(self, partition: TopicPartition, leader_epoch: int) -> OffsetForLeaderEpochRequest:
        wanted = OffsetForLeaderPartition(
            partition=partition.partition, current_leader_epoch=leader_epoch, leader_epoch=self._read[partition]
        )
        topic = OffsetForLeaderTopic(topic=partition.topic, partitions=(wanted,))
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,))


def epoch_in(topic: Topic, partition: TopicPartition) -> int:
    return topic.partitions[partition.partition].leader_epoch
