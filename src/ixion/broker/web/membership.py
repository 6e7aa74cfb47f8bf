"""Metrics of a broker in a cluster: its registration, replication, and its work as the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ixion.broker.web.exposition import Exposition


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    registered_ms: int | None
    renewed: int  # ZooKeeper sessions that were replaced
    followed: int  # partitions that this broker follows
    max_lag: int
    is_controller: bool
    terms: int
    elections: Mapping[str, int]  # by reason
    unclean: int


def membership(page: Exposition, now: Membership | None) -> None:
    if now is None:  # a single broker
        return
    page.gauge(
        "ixion_registered", "1 while this broker is registered in ZooKeeper.", int(now.registered_ms is not None)
    )
    page.gauge(
        "ixion_registered_since_seconds",
        "When this broker was registered, in seconds since 1970; 0 while it is not.",
        (now.registered_ms or 0) / 1e3,
    )
    page.counter("ixion_sessions_renewed_total", "ZooKeeper sessions that expired and were replaced.", now.renewed)
    page.gauge("ixion_followed_partitions", "Partitions that this broker follows.", now.followed)
    page.gauge("ixion_replica_max_lag", "Lag, in records, of the partition furthest behind its leader.", now.max_lag)
    page.gauge("ixion_active_controller", "1 on the broker that is the controller.", int(now.is_controller))
    page.counter("ixion_controller_terms_total", "How often this broker became the controller.", now.terms)
    page.counter(
        "ixion_leader_elections_total",
        "Leaders elected by this broker as the controller, by reason.",
        [({"why": why}, count) for why, count in now.elections.items()],
    )
    page.counter(
        "ixion_unclean_leader_elections_total", "Elections of an out-of-sync replica; records may be lost.", now.unclean
    )
