"""What became of the records for one partition."""

from __future__ import annotations

from ixion.model.errors import ErrorCode
from ixion.replica.partition import Partition


class AppendResult:
    def __init__(self, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
        self.partition: Partition | None = None
        self.code = ErrorCode.NONE
        self.message: str | None = None
        self.record_errors: tuple[tuple[int, str], ...] = ()  # (index in the batch, what is wrong with it)
        self.first_offset = -1
        self.append_time = -1
        self.log_start = -1
        self.required = 0  # the high watermark that acks=all waits for
        self.must_flush = False  # nothing is acknowledged before it is on the disk
        self.waits = False  # its outcome is still open
