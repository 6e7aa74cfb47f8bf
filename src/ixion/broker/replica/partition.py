"""One replica of a partition on this broker.

A leader appends, serves reads, and keeps the high watermark: the largest offset that every in-sync replica has. A
replica that is about to join the ISR counts as well (one on a live broker that caught up within
replica.lag.time.max.ms); otherwise the watermark would go back when it joins. With one replica the watermark follows
each append.

    leader's end 70, follower 2 (in sync) at 50, follower 3 (out of sync, behind) at 20    high watermark 50
    follower 2 fetches from 70                                                             high watermark 70

With flush.messages=1 no record is acknowledged or visible before it is on the disk, so the watermark also waits for the
flush.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from ixion.broker.log.checked_batch import CheckedBatch
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import AppendInfo, Origin
from ixion.broker.replica.follower import Follower
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.layout import Buffer

logger = logging.getLogger(__name__)

SAMPLES: Final = 100
SAMPLE_BYTES: Final = 16 << 10
DELAY_HEADER: Final = b"x-deliver-"

# Called with the new in-sync replicas; the callee has them stored and then calls `set_isr`.
IsrChange = Callable[["Partition", tuple[int, ...]], None]


class Scheduling(Protocol):
    """Takes the appends of a partition with delayed records; see `schedules.schedule`."""

    def append(self, records: Buffer, acks: int, origin: Origin, checked: CheckedBatch | None = None) -> AppendInfo: ...

    def flush(self, log: Log) -> None: ...

    def may_join(self, broker_id: int) -> bool:
        """Whether a follower that has caught up may join the ISR: it must have the delayed records as well."""

    def sibling_moved(self, log: Log) -> None:
        """The sibling is in another directory from now on. Called on any thread."""


class Partition:
    def __init__(self, log: Log, node_id: int, min_isr: int, max_lag_ms: int, clock_ms: Callable[[], int]) -> None:
        """`clock_ms`: a monotonic clock. If a wall clock is set back, a silent follower stays in the ISR."""
        self.log = log
        self.topic = log.topic
        self.number = log.partition
        self.key: TopicPartition = (log.topic, log.partition)
        self.topic_id = b""
        self.node_id = node_id
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = -1  # the version of the state that this replica knows
        self.epoch_start = 0  # this leader's first offset
        self.leads = False
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.followers: dict[int, Follower] = {}
        self.min_isr = min_isr
        self.throttled_as_leader = False  # by leader.replication.throttled.replicas of its topic
        self.throttled_as_follower = False
        self.max_lag_ms = max_lag_ms
        self.on_isr_wanted: IsrChange | None = None
        self.is_alive: Callable[[int], bool] = always  # whether a broker is one of the live ones
        self._isr_wanted: tuple[int, ...] | None = None  # requested, not answered yet
        self.clock_ms = clock_ms
        self.covers: Partition | None = None  # of a sibling: the partition whose delayed records wait in it
        self.schedule: Scheduling | None = None  # takes appends if records may have a delivery delay
        self.samples = SAMPLES  # how many more batches are searched for x-deliver-… headers

    # Leadership.

    def make_leader(self, leader_epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...]) -> bool:
        """True if leadership is new: this broker did not lead before, or the epoch is later."""
        anew = not self.leads or leader_epoch > self.leader_epoch
        now_ms = self.clock_ms()
        if anew:
            self.log.assign_epoch(leader_epoch, self.log.end_offset)  # first, because it may fail
        self.replicas = replicas
        self.isr = isr
        self._isr_wanted = None
        self.followers = {
            number: self.followers.get(number) or Follower(number) for number in replicas if number != self.node_id
        }
        if anew:
            self.leader_id = self.node_id
            self.leader_epoch = leader_epoch
            self.leads = True
            self.epoch_start = self.log.end_offset
            for follower in self.followers.values():
                follower.reset(now_ms, follower.broker_id in isr)
        self.advance_high_watermark()
        return anew

    def make_follower(self, leader_id: int, leader_epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...]) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.leads = False
        self.isr = isr
        self.replicas = replicas
        self.followers = {}
        self._isr_wanted = None

    def fault(self, known_epoch: int, leader_only: bool = True) -> ErrorCode:
        """Whether a request that knows `known_epoch` (-1: none) may be served here."""
        if known_epoch >= 0 and known_epoch != self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH if known_epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        if leader_only and not self.leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    @property
    def lost(self) -> ErrorCode:
        """The code for waiting operations: why this broker no longer leads the partition."""
        return ErrorCode.KAFKA_STORAGE_ERROR if self.log.directory.offline else ErrorCode.NOT_LEADER_OR_FOLLOWER

    # Appending.

    def check_leads(self, acks: int) -> None:
        """KafkaError if this broker cannot append with these acks."""
        if not self.leads:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.node_id} does not lead {self.log.name}")
        if acks == -1 and not self.enough_in_sync:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.log.name} has {len(self.isr)} replicas in sync, min.insync.replicas is {self.min_isr}",
            )

    def append(self, records: Buffer, acks: int, origin: Origin, checked: CheckedBatch | None = None) -> AppendInfo:
        self.check_leads(acks)
        if self.samples > 0:
            self._look_for_delays(records)
        log = self.log
        try:
            return log.append_as_leader(records, self.leader_epoch, origin, -1, checked)
        except KafkaError:
            if self.log is log:
                raise
            # The log moved to another directory while we waited for its lock; nothing was appended.
            return self.log.append_as_leader(records, self.leader_epoch, origin, -1, checked)

    def _look_for_delays(self, records: Buffer) -> None:
        """Warn once if records ask for a later delivery but the topic ignores that and delivers them at once."""
        self.samples -= 1
        if self.schedule is None and DELAY_HEADER in bytes(records[:SAMPLE_BYTES]):
            self.samples = 0
            logger.warning(
                "records of %s have x-deliver-… headers, which count only with delivery.delay.mode=record", self.topic
            )

    def advance_high_watermark(self) -> bool:
        """True if it moved."""
        if not self.leads:
            return False
        log = self.log
        offset = log.recovery_point if self.shows_flushed_only else log.end_offset
        if self.followers:
            if not self.enough_in_sync:
                return False
            now_ms = self.clock_ms()
            joining = self._isr_wanted or ()  # in sync once it is stored: the watermark waits for them
            for follower in self.followers.values():
                if follower.end_offset < offset and (
                    follower.broker_id in self.isr
                    or follower.broker_id in joining
                    or (now_ms - follower.caught_up_ms <= self.max_lag_ms and self.is_alive(follower.broker_id))
                ):
                    offset = follower.end_offset
            if offset < 0:
                return False
        return log.raise_high_watermark(offset)

    # Followers.

    def follower_fetched(self, broker_id: int, offset: int, log_start: int, broker_epoch: int = -1) -> bool:
        """Note that a follower has everything below `offset`. True if the high or low watermark may have moved."""
        follower = self.followers.get(broker_id)
        if follower is None or 0 <= broker_epoch < follower.broker_epoch:
            return False  # it is no replica, or the fetch is from before its restart
        before = self.low_watermark
        follower.broker_epoch = broker_epoch
        follower.fetched(offset, log_start, self.log.end_offset, self.clock_ms())
        if (
            broker_id not in self.isr
            and offset >= max(self.log.high_watermark, self.epoch_start)
            and self.is_alive(broker_id)
            and (self.schedule is None or self.schedule.may_join(broker_id))
        ):
            self._want_isr((*self.isr, broker_id))
        moved = self.advance_high_watermark()
        return moved or self.low_watermark != before

    def shrink_isr(self) -> None:
        """Ask to remove followers from the ISR that have been behind for too long. Called at intervals."""
        if not self.leads or not self.followers:
            return
        now_ms = self.clock_ms()
        end = self.log.end_offset
        lagging = [
            follower.broker_id
            for follower in self.followers.values()
            if follower.broker_id in self.isr and follower.lags(end, now_ms, self.max_lag_ms)
        ]
        if lagging:
            self._want_isr(tuple(number for number in self.isr if number not in lagging))

    def _want_isr(self, isr: tuple[int, ...]) -> None:
        if self._isr_wanted is None and self.on_isr_wanted is not None:
            self._isr_wanted = isr
            self.on_isr_wanted(self, isr)

    def still_wants(self, isr: tuple[int, ...]) -> bool:
        """Whether this change is still open, and no later role has replaced it."""
        return self.leads and self._isr_wanted is isr

    def set_isr(self, isr: tuple[int, ...]) -> bool:
        """Set the stored ISR after a change succeeded or failed. True if the high watermark moved."""
        self._isr_wanted = None
        self.isr = isr
        return self.advance_high_watermark()

    # Offsets.

    @property
    def shows_flushed_only(self) -> bool:
        return self.log.config.flush_messages == 1

    @property
    def enough_in_sync(self) -> bool:
        """Whether min.insync.replicas are in sync; never more than the partition has."""
        return len(self.isr) >= min(self.min_isr, len(self.followers) + 1)

    @property
    def low_watermark(self) -> int:
        """The largest log start that every replica on a live broker has reached; -1 until each has reported its own."""
        low = self.log.log_start
        for follower in self.followers.values():
            if follower.log_start < low and self.is_alive(follower.broker_id):
                low = follower.log_start
        return low


def always(_broker_id: int) -> bool:
    return True
