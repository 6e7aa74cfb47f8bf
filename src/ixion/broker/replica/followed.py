"""A partition that a fetcher copies, and its sibling with the delayed records.

The sibling is fetched with its partition, and limits what is appended to it (`siblings`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from ixion.broker.replica.fetch_requests import Place
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.reconciling import start_offset
from ixion.broker.replica.siblings import covered_part
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchPartition, PartitionData
from ixion.language.records.layout import Buffer


class Followed:
    """A partition that is copied, under one role."""

    def __init__(self, partition: Partition) -> None:
        self.partition: Final = partition
        self.leader_epoch: Final = partition.leader_epoch
        self.offset = start_offset(partition.log)
        self.sibling: Followed | None = None  # holds the delayed records of this partition
        self.covered = -1  # of a sibling: it has every note below this offset
        self.behind = -1  # lag to the leader's high watermark at the last answer; -1: no answer yet
        self.not_before_s = 0.0
        self.complaint = ""  # the last fault that was logged
        self.cutting: asyncio.Future[None] | None = None  # on a worker thread
        self._wish: FetchPartition | None = None

    @property
    def is_throttled(self) -> bool:
        """Whether follower.replication.throttled.rate applies: it has not caught up, or does not know yet."""
        return self.partition.throttled_as_follower and self.behind != 0

    @property
    def place(self) -> Place:
        return (self.partition.topic_id, self.partition.number)

    def wish(self, max_bytes: int) -> FetchPartition:
        """What to fetch. Returns the same object if nothing has changed: most of a thousand partitions are idle."""
        log = self.partition.log
        known = self._wish
        if (
            known is not None
            and known.fetch_offset == self.offset
            and known.last_fetched_epoch == log.epochs.latest
            and known.log_start_offset == log.log_start
            and known.partition_max_bytes == max_bytes
        ):
            return known
        self._wish = FetchPartition(
            partition=self.partition.number,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=log.epochs.latest,
            log_start_offset=log.log_start,
            partition_max_bytes=max_bytes,
        )
        return self._wish

    # For a partition with delayed records.

    def follow_sibling(self, sibling: Partition) -> Followed:
        made = self.sibling = Followed(sibling)
        made.offset = min(sibling.log.end_offset, self.partition.log.end_offset)
        return made

    def has_unknown_sibling(self, answers: Mapping[Place, PartitionData]) -> bool:
        """Whether the leader knows the topic but not the id of its sibling: it is no ixion broker and has no notes."""
        answer = None if self.sibling is None else answers.get(self.sibling.place)
        if answer is None or answer.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
            return False
        return answers[self.place].error_code == ErrorCode.NONE

    def covered_part(self, records: Buffer) -> Buffer:
        """The records that the sibling's notes cover: only these may be appended."""
        if self.sibling is None or not records:
            return records
        records = covered_part(records, self.sibling.covered)
        if not records:
            self.not_before_s = self.sibling.not_before_s
        return records

    def note_covered(self, data: PartitionData) -> None:
        """For a sibling, after an answer: note how far its notes go."""
        end = self.partition.log.end_offset
        self.covered = max(self.covered, data.high_watermark if end >= data.last_stable_offset else end)
