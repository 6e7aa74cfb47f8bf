"""The leader and the in-sync replicas of a partition, as the tree has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ixion.broker.metadata.topic_node import PartitionState

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
    eligible: tuple[int, ...] = ()  # the ELR: outside the ISR, with every committed record (see `witnesses`)
    # Witness -> the broker epoch with which it had every committed record (see `witnesses`).
    epochs: Mapping[int, int] = field(default_factory=lambda: NO_EPOCHS, compare=False)

    @property
    def witnesses(self) -> tuple[int, ...]:
        """The replicas that had every committed record when this was written."""
        return (*self.isr, *self.eligible)

    def with_isr(self, isr: tuple[int, ...]) -> Leadership:
        """Members that leave the ISR become eligible; a write drops them if enough others are in sync."""
        return replace(self, isr=isr, eligible=tuple([each for each in self.witnesses if each not in isr]))

    def next(self, leader: int, isr: tuple[int, ...], recovering: bool | None = None) -> Leadership:
        """The leadership after a decision of the controller, in the next leader epoch."""
        return replace(
            self.with_isr(isr),
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            recovering=self.recovering if recovering is None else recovering,
        )


def leadership_of(state: PartitionState, version: int, zxid: int) -> Leadership:
    """`version` and `zxid` are those of the node.

    A witness without an epoch, as Apache Kafka and older versions write them, had registered when the state was
    written: then the zxid of the write takes its place. An epoch that is younger than the state was written to another
    tree, and copied.
    """
    return Leadership(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=version,
        controller_epoch=state.controller_epoch,
        recovering=state.recovering,
        eligible=state.eligible,
        epochs={each: min(state.isr_epochs.get(each, zxid), zxid) for each in (*state.isr, *state.eligible)},
    )


def state_of(leadership: Leadership, controller_epoch: int) -> PartitionState:
    return PartitionState(
        leader=leadership.leader,
        leader_epoch=leadership.leader_epoch,
        isr=leadership.isr,
        controller_epoch=controller_epoch,
        recovering=leadership.recovering,
        isr_epochs=leadership.epochs,
        eligible=leadership.eligible,
    )
