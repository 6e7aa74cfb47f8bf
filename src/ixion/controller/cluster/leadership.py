"""The leader and the in-sync replicas of a partition, as the tree has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ixion.metadata.topic_node import PartitionState

NO_LEADER: Final = -1
FIRST_EPOCH: Final = 0
NO_EPOCHS: Final[Mapping[int, int]] = {}


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
    # Known only where the tree was just read: the zxid of the write, and the broker epochs that were written beside the
    # ISR. Apache Kafka and older versions do not write any.
    zxid: int | None = field(default=None, compare=False)
    isr_epochs: Mapping[int, int] = field(default_factory=lambda: NO_EPOCHS, compare=False)

    def registered_by(self, member: int) -> int | None:
        """By this zxid the ISR member had registered with the log that was in sync; None: not known."""
        if self.zxid is None:
            return None
        # An epoch that is younger than the state was written to another tree, and copied.
        return min(self.isr_epochs.get(member, self.zxid), self.zxid)

    def next(self, leader: int, isr: tuple[int, ...], recovering: bool | None = None) -> Leadership:
        """The leadership after a decision of the controller, in the next leader epoch."""
        return replace(
            self,
            leader=leader,
            isr=isr,
            leader_epoch=self.leader_epoch + 1,
            recovering=self.recovering if recovering is None else recovering,
            zxid=None,
            isr_epochs=NO_EPOCHS,
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
        isr_epochs=state.isr_epochs,
    )


def state_of(
    leadership: Leadership, controller_epoch: int, broker_epochs: Mapping[int, int] = NO_EPOCHS
) -> PartitionState:
    """`broker_epochs` are those of the registered brokers, as the controller knows them."""
    return PartitionState(
        leader=leadership.leader,
        leader_epoch=leadership.leader_epoch,
        isr=leadership.isr,
        controller_epoch=controller_epoch,
        recovering=leadership.recovering,
        isr_epochs={member: broker_epochs[member] for member in leadership.isr if member in broker_epochs},
    )
