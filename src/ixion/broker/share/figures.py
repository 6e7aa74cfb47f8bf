"""What share partitions of a broker have done since its start, for metrics."""

from __future__ import annotations

from ixion.broker.share.acknowledgement import Change
from ixion.broker.share.states import ACKNOWLEDGED, ARCHIVED, ARCHIVING, DEFERRED


class ShareFigures:
    def __init__(self) -> None:
        self.acquired = 0
        self.acknowledged = 0
        self.deferred = 0
        self.due = 0  # deferred records that became available
        self.expired = 0  # records whose lock ended without an acknowledgement
        self.writes = 0
        self.failed_writes = 0
        self.dead_letters = 0
        self.failed_letters = 0
        self.released: dict[str, int] = {}  # by cause
        self.archived_by: dict[str, int] = {}

    def note(self, changes: list[Change], cause: str) -> None:
        """Count changes that have come into force. `cause`: why those came back that did."""
        for change in changes:
            size = change.last - change.first + 1
            if change.state == ACKNOWLEDGED:
                self.acknowledged += size
            elif change.state == ARCHIVED:
                self.archived("rejected or at the delivery limit", size)
            elif change.state != ARCHIVING:  # such a record counts once it is archived
                self.released[cause] = self.released.get(cause, 0) + size
                if change.state == DEFERRED:
                    self.deferred += size

    def archived(self, cause: str, size: int) -> None:
        self.archived_by[cause] = self.archived_by.get(cause, 0) + size
