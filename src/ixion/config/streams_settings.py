"""Streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import INT_MAX, Scope, integer

GROUP_STREAMS_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.streams.heartbeat.interval.ms", 5_000, least=1, doc="heartbeat interval of members of streams groups"
)
GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.streams.min.heartbeat.interval.ms",
    5_000,
    least=1,
    doc="lowest heartbeat interval that a streams group may set",
)
GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.streams.max.heartbeat.interval.ms",
    15_000,
    least=1,
    doc="highest heartbeat interval that a streams group may set",
)
GROUP_STREAMS_SESSION_TIMEOUT_MS: Final = integer(
    "group.streams.session.timeout.ms", 45_000, least=1, doc="session timeout of members of streams groups"
)
GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS: Final = integer(
    "group.streams.min.session.timeout.ms", 45_000, least=1, doc="lowest session timeout that a streams group may set"
)
GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS: Final = integer(
    "group.streams.max.session.timeout.ms", 60_000, least=1, doc="highest session timeout that a streams group may set"
)
GROUP_STREAMS_MAX_SIZE: Final = integer(
    "group.streams.max.size", INT_MAX, least=1, doc="most members of a streams group"
)
GROUP_STREAMS_NUM_STANDBY_REPLICAS: Final = integer(
    "group.streams.num.standby.replicas", 0, least=0, doc="standby tasks of each stateful task of a streams group"
)
GROUP_STREAMS_MAX_STANDBY_REPLICAS: Final = integer(
    "group.streams.max.standby.replicas", 2, least=0, doc="highest number of standby tasks that a streams group may set"
)
GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS: Final = integer(
    "group.streams.initial.rebalance.delay.ms",
    100,  # 3,000 in Kafka. The threads of one application join within that time, and a single one hardly waits
    least=0,
    doc="wait for more members before the first assignment of an empty streams group",
)
GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.streams.assignment.interval.ms",
    1_000,
    scope=Scope.CLUSTER_WIDE,
    least=0,
    doc="shortest time between two assignments of a streams group",
)
GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.streams.min.assignment.interval.ms",
    0,
    least=0,
    doc="lowest assignment interval that a streams group may set",
)
GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.streams.max.assignment.interval.ms",
    15_000,
    least=0,
    doc="highest assignment interval that a streams group may set",
)
