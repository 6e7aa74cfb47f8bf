"""How the controller answers AlterPartition, by which a leader asks for another ISR. Without I/O.

The order of the checks matters. A retry must succeed, although its partition epoch is old by then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.metadata.topic_node import Replicas
from ixion.language.model.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedIsr:
    sender: int
    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]  # member -> the broker epoch that it fetched with; -1: the leader does not know
    recovering: bool


def judge(
    known: Leadership, replicas: Replicas, wanted: WantedIsr, live: Mapping[int, int], stopping: Collection[int]
) -> Leadership | ErrorCode:
    """The leadership to write, or `known` if nothing changes; otherwise the error code.

    `live` has the registered epoch of each live broker.
    """
    isr = tuple(wanted.isr)
    if wanted.leader_epoch > known.leader_epoch or wanted.partition_epoch > known.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows a newer controller than this one
    if wanted.leader_epoch < known.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if wanted.sender != known.leader:
        return ErrorCode.INVALID_REQUEST
    if set(isr) == set(known.isr) and wanted.recovering == known.recovering:
        return known
    if wanted.partition_epoch < known.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not isr or known.leader not in isr or any(member not in replicas.all for member in isr):
        return ErrorCode.INVALID_REQUEST
    if wanted.recovering and (not known.recovering or len(isr) > 1):
        return ErrorCode.INVALID_REQUEST  # only an election starts a recovery; only its leader is in sync until its end
    for member, epoch in wanted.isr.items():
        if member not in live or member in stopping:
            return ErrorCode.INELIGIBLE_REPLICA
        if epoch not in (-1, live[member]):
            return ErrorCode.INELIGIBLE_REPLICA  # it has restarted since it fetched, perhaps with an empty disk
    return replace(known.with_isr(isr), recovering=wanted.recovering)
