"""The states of an offset of a share partition. Those that are stored have Kafka's numbers."""

from __future__ import annotations

from typing import Final

AVAILABLE: Final = 0
ACQUIRED: Final = 1  # a member has it until its lock expires
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3  # to be archived once its dead letter is written
ARCHIVED: Final = 4  # rejected, at the delivery limit, aborted, or a gap
DEFERRED: Final = 5  # released, and not available before its due time; stored as AVAILABLE with that time
PENDING: Final = 6  # its member has acknowledged it, and the write of that is under way
STATES: Final = 7

NOBODY: Final = 0
NEVER: Final = 0
