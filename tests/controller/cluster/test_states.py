"""The tables of phases: every move that is not in them is refused and changes nothing."""

from __future__ import annotations

import pytest

from ixion.broker.controller.cluster.cluster import Cluster
from ixion.broker.controller.cluster.states import (
    PARTITION_BEFORE,
    REPLICA_BEFORE,
    IllegalMoveError,
    PartitionPhase,
    ReplicaPhase,
)

KEY, REPLICA = ("t", 0), ("t", 0, 1)


@pytest.mark.parametrize("before", PartitionPhase)
@pytest.mark.parametrize("after", PartitionPhase)
def test_moves_of_partitions(before: PartitionPhase, after: PartitionPhase) -> None:
    cluster = Cluster()
    cluster.found_partition(KEY, before)
    if before in PARTITION_BEFORE[after]:
        cluster.enter(KEY, after)
        assert cluster.phase(KEY) is after
    else:
        with pytest.raises(IllegalMoveError, match="partition t-0 cannot become"):
            cluster.enter(KEY, after)
        assert cluster.phase(KEY) is before


@pytest.mark.parametrize("before", ReplicaPhase)
@pytest.mark.parametrize("after", ReplicaPhase)
def test_moves_of_replicas(before: ReplicaPhase, after: ReplicaPhase) -> None:
    cluster = Cluster()
    cluster.found_replica(REPLICA, before)
    if before in REPLICA_BEFORE[after]:
        cluster.enter_replica(REPLICA, after)
        assert cluster.replica_phase(REPLICA) is after
    else:
        with pytest.raises(IllegalMoveError, match="replica 1 of t-0 cannot become"):
            cluster.enter_replica(REPLICA, after)
        assert cluster.replica_phase(REPLICA) is before


def test_every_phase_can_be_entered_and_left() -> None:
    assert set(PARTITION_BEFORE) == set(PartitionPhase)
    assert set(REPLICA_BEFORE) == set(ReplicaPhase)
    assert {before for each in PARTITION_BEFORE.values() for before in each} == set(PartitionPhase)
    assert {before for each in REPLICA_BEFORE.values() for before in each} == set(ReplicaPhase)
    assert PartitionPhase.NEW not in PARTITION_BEFORE[PartitionPhase.NONE], "a new partition is not lost on the way"
    assert ReplicaPhase.DELETING not in REPLICA_BEFORE[ReplicaPhase.ONLINE], "what is being deleted does not come back"
