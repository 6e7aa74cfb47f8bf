"""Windows in which quotas are measured."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import integer

QUOTA_WINDOW_NUM: Final = integer("quota.window.num", 11, least=1, doc="windows remembered for client quotas")
QUOTA_WINDOW_SIZE_SECONDS: Final = integer("quota.window.size.seconds", 1, least=1, doc="length of such a window")
REPLICATION_QUOTA_WINDOW_NUM: Final = integer(
    "replication.quota.window.num", 11, least=1, doc="windows remembered for replication quotas"
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS: Final = integer(
    "replication.quota.window.size.seconds", 1, least=1, doc="length of such a window"
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM: Final = integer(
    "alter.log.dirs.replication.quota.window.num",
    11,
    least=1,
    doc="windows remembered for moves between log directories",
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS: Final = integer(
    "alter.log.dirs.replication.quota.window.size.seconds", 1, least=1, doc="length of such a window"
)
CONTROLLER_QUOTA_WINDOW_NUM: Final = integer(
    "controller.quota.window.num", 11, least=1, doc="windows remembered for quotas on changes of topics"
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS: Final = integer(
    "controller.quota.window.size.seconds", 1, least=1, doc="length of such a window"
)
