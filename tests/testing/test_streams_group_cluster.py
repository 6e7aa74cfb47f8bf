"""A streams group in a cluster: its coordinator is not the controller, and dies."""

from __future__ import annotations

import time
from typing import Any

from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Cluster
from tests.apis.raw import Raw
from tests.apis.streams_group_kit import active, beat, has, subtopology, topic, topology

STORE = topology(subtopology("0", "t", changelogs=(topic("store"),)))
PATIENCE_S = 30
NOT_NOW = (14, 15, 16)  # the coordinator is loading, or not here


def coordinator(cluster: Cluster, group: str, gone: int = 0) -> tuple[int, str]:
    with Raw(next(broker.bootstrap for number, broker in cluster.brokers.items() if number != gone)) as raw:
        until = time.monotonic() + PATIENCE_S
        while True:
            found = raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key=group, key_type=0))
            if found.error_code == 0 and found.node_id != gone:
                return found.node_id, f"{found.host}:{found.port}"
            assert time.monotonic() < until, found
            time.sleep(0.1)


def served(cluster: Cluster, group: str, gone: int = 0, **fields: Any) -> Any:
    """The answer of the coordinator, once it is one."""
    until = time.monotonic() + PATIENCE_S
    while True:
        with Raw(coordinator(cluster, group, gone)[1]) as raw:
            answer = beat(raw, group, **fields)
        if answer.error_code not in NOT_NOW:
            return answer
        assert time.monotonic() < until, answer
        time.sleep(0.1)


def test_a_group_outlives_its_coordinator() -> None:
    with Cluster(3, {"group.streams.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 6}) as cluster:
        cluster.create_topic("t", 2)
        names = (f"g{number}" for number in range(100))
        group = next(name for name in names if coordinator(cluster, name)[0] != cluster.controller)
        joined = served(cluster, group, topology=STORE)
        assert (joined.error_code, joined.status, active(joined)) == (0, (), {"0": (0, 1)})
        gone = coordinator(cluster, group)[0]
        cluster.kill(gone)
        again = served(cluster, group, gone, epoch=joined.member_epoch, **has({"0": (0, 1)}))
        assert (again.error_code, again.member_epoch, again.status) == (0, joined.member_epoch, ())
