"""The windows over which quotas are measured."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import LONG_MAX, Scope, integer, long

QUOTA_WINDOW_NUM: Final = integer("quota.window.num", 11, least=1, doc="number of windows for client quotas")
QUOTA_WINDOW_SIZE_SECONDS: Final = integer("quota.window.size.seconds", 1, least=1, doc="length of a window")
REPLICATION_QUOTA_WINDOW_NUM: Final = integer(
    "replication.quota.window.num", 11, least=1, doc="number of windows for replication quotas"
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS: Final = integer(
    "replication.quota.window.size.seconds", 1, least=1, doc="length of a window"
)
LEADER_REPLICATION_THROTTLED_RATE: Final = long(
    "leader.replication.throttled.rate",
    LONG_MAX,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    doc="bytes per second that this broker sends to out-of-sync followers of throttled partitions",
)
FOLLOWER_REPLICATION_THROTTLED_RATE: Final = long(
    "follower.replication.throttled.rate",
    LONG_MAX,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    doc="bytes per second that this broker fetches of throttled partitions while it is out of sync",
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM: Final = integer(
    "alter.log.dirs.replication.quota.window.num",
    11,
    least=1,
    doc="number of windows for moves between log directories",
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS: Final = integer(
    "alter.log.dirs.replication.quota.window.size.seconds", 1, least=1, doc="length of a window"
)
CONTROLLER_QUOTA_WINDOW_NUM: Final = integer(
    "controller.quota.window.num", 11, least=1, doc="number of windows for quotas on changes of topics"
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS: Final = integer(
    "controller.quota.window.size.seconds", 1, least=1, doc="length of a window"
)
