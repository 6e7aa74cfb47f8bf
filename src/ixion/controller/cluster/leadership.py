"""The leader and the in-sync replicas of a partition, as the tree has them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from ixion.metadata.topic_node import PartitionState

NO_LEADER: Final = -1
FIRST_EPOCH: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """`partition_epoch` is the version of the node, and grows with every write. The leader epoch grows with every
    decision of the controller: brokers ignore a leader epoch that they know already."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0
    controller_epoch: int = 0  # of the controller that wrote it
    recovering: bool = False  # the leader was elected uncleanly and has not recovered yet
    zxid: int | None = field(default=None, compare=False)  # of the write; known only where the tree was just read

    def next(self, leader: int, isr: tuple[int, ...], recovering: bool | None = None) -> Leadership:
        """The leadership after a decision of the controller, in the next leader epoch."""
        return replace(
            self,
            leader=leader,
            isr=isr,
            leader_epoch=self.leader_epoch + 1,
            recovering=self.recovering if recovering is None else recovering,
            zxid=None,
        )


def leadership_of(state: PartitionState, version: int, zxid: int | None = None) -> Leadership:
    return Leadership(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=version,
        controller_epoch=state.controller_epoch,
        recovering=state.recovering,
        zxid=zxid,
    )


def state_of(leadership: Leadership, controller_epoch: int) -> PartitionState:
    return PartitionState(
        leader=leadership.leader,
        leader_epoch=leadership.leader_epoch,
        isr=leadership.isr,
        controller_epoch=controller_epoch,
        recovering=leadership.recovering,
    )
