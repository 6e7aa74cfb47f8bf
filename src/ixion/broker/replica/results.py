"""Wishes and results of produces and fetches, one per partition."""

# This module is compiled: see setup.py.

from __future__ import annotations

from ixion.broker.log.handle import FileSlice
from ixion.broker.log.txn_index import AbortedTxn
from ixion.broker.replica.partition import Partition
from ixion.language.model.errors import ErrorCode


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
        self.must_flush = False  # acknowledged only once it is on the disk
        self.waits = False  # the result is still open


class FetchWish:
    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        number: int,
        offset: int,
        max_bytes: int,
        leader_epoch: int = -1,
        last_epoch: int = -1,
        log_start: int = -1,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.number = number
        self.key = (topic, number)
        self.offset = offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch  # that the client knows; -1: none
        self.last_epoch = last_epoch  # of the client's last record; -1: unknown
        self.log_start = log_start  # a follower's


class FetchResult:
    def __init__(self, wish: FetchWish) -> None:
        self.wish = wish
        self.code = ErrorCode.NONE
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start = -1
        self.records: bytes | FileSlice = b""
        self.aborted: list[AbortedTxn] | None = None
        self.diverging_epoch = -1  # the client's log has diverged: our end of that epoch
        self.diverging_end = -1
        self.preferred_replica = -1
        self.throttled = False  # counts against leader.replication.throttled.rate
        # Where the read began, and how many bytes can be read from there.
        self.segment_base = -1
        self.position = -1
        self.readable = 0
