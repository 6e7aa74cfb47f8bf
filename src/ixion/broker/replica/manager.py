"""All replicas of this broker, and the purgatories in which requests wait for them.

Which event completes which operations:

| what happened to a partition      | produces       | fetches                                  | deletions |
|-----------------------------------|----------------|------------------------------------------|-----------|
| records appended                  |                | of followers                             |           |
| high watermark moved              | with acks=all  | of consumers                             |           |
| last stable offset moved          |                | at read_committed                        |           |
| log start or a follower's moved   |                |                                          | all       |
| no longer led, stopped, disk gone | all            | all                                      | all       |

An operation checks its own condition, so each event checks all operations that wait for the partition. A partition
without waiters costs one dictionary lookup.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.log.checked_batch import CheckedBatch
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.prepare import Origin
from ixion.broker.replica.append import NONE_CHECKED, Entry, GiveUp, append
from ixion.broker.replica.checking import Checking
from ixion.broker.replica.completions import Completions
from ixion.broker.replica.counters import Counters
from ixion.broker.replica.delayed_delete_records import DeletionResult
from ixion.broker.replica.delete_records import delete_records
from ixion.broker.replica.delivery_delay import DeliveryDelays
from ixion.broker.replica.fair_workers import FairWorkers
from ixion.broker.replica.fetch import FetchTerms, fetch
from ixion.broker.replica.moves import DirectoryMoves
from ixion.broker.replica.partition import IsrChange, Partition, always
from ixion.broker.replica.results import AppendResult, FetchResult, FetchWish
from ixion.language.model.complaints import Complaints
from ixion.language.model.delay_names import is_sibling, sibling_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import NO_LOG, TopicPartition
from ixion.purgatory.purgatory import DelayedOperationPurgatory
from ixion.timer.lane import Lane
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    import asyncio

    from ixion.broker.replica.replication_quota import ReplicationQuota
    from ixion.broker.replica.selecting import RackAwareSelector

logger = logging.getLogger(__name__)

# Of a purgatory. One thread uses it, so they only keep a purge of very many keys from listing them all at once. (The
# 512 of Kafka cost 0.9 MB and 4 ms of a start.)
SHARDS: Final = 16

FLUSH_RETRY_MS: int = 1_000  # after a failed flush on a disk that has not failed
LeadershipChange = Callable[[str, int, int], None]  # topic, partition, leader epoch; -1: not led here any more


class ReplicaManager:
    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        *,
        timer: Timer,
        loop: asyncio.AbstractEventLoop,
        workers: Executor,
        clock_ms: Callable[[], int],
        monotonic_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
        min_isr_of: Callable[[str], int] = lambda _topic: 1,
        throttled: Callable[[str, int], tuple[bool, bool]] = lambda _topic, _number: (False, False),
        max_lag_ms: int = 30_000,
        produce_purge: int = 1000,
        fetch_purge: int = 1000,
        delete_purge: int = 1,
        move_threads: int = 1,
    ) -> None:
        self.node_id = node_id
        self.logs = logs
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()  # replicas whose disk has failed
        self.counters = Counters()
        self.produce_purgatory = DelayedOperationPurgatory(
            "Produce", timer=timer, purge_interval=produce_purge, shards=SHARDS
        )
        self.fetch_purgatory = DelayedOperationPurgatory(
            "Fetch", timer=timer, purge_interval=fetch_purge, shards=SHARDS
        )
        self.delete_records_purgatory = DelayedOperationPurgatory(
            "DeleteRecords", timer=timer, purge_interval=delete_purge, shards=SHARDS
        )
        self.elect_leader_purgatory = DelayedOperationPurgatory("ElectLeader", timer=timer, shards=1)
        self.completions = Completions(loop.call_soon)
        self.fetch_lane = Lane(loop.call_soon)  # for fetches of many partitions
        self.append_lane = Lane(loop.call_soon, fair=True)  # for appends and deletions
        self.fair_workers = FairWorkers(loop, logs.make_pool)
        self.delays = DeliveryDelays(timer, self.fetch_lane, clock_ms, monotonic_ms, self.appended, self.fair_workers)
        self.checking = Checking(self.partitions, self.fair_workers, clock_ms)
        self.moves = DirectoryMoves(logs, loop, move_threads, self._arrived, self._moved)
        self.on_leadership: list[LeadershipChange] = []
        self.on_reconfigured: list[Callable[[Partition], None]] = []
        self.on_moved: list[Callable[[Partition], None]] = []
        self.on_isr_wanted: IsrChange | None = None
        self.is_alive: Callable[[int], bool] = always  # whether a broker is one of the live ones
        self.on_readable: Callable[[TopicPartition], object] | None = None  # of share groups, once there are some
        self._timer = timer
        self._loop = loop
        self._workers = workers
        self._monotonic_ms = monotonic_ms
        self._min_isr_of = min_isr_of
        self._throttled = throttled  # whether a replica of this broker is throttled, as leader and as follower
        self.leader_quota: ReplicationQuota | None = None  # only with several brokers
        self.follower_quota: ReplicationQuota | None = None
        self.selector: RackAwareSelector | None = None  # None: consumers read from the leader
        self._max_lag_ms = max_lag_ms
        self._flushing: dict[Log, bool] = {}  # a flush runs; True: another is due after it
        self._to_flush_again: set[Log] = set()  # a flush failed; the timer has the next attempt
        self._complaints = Complaints(logger)
        self._stopped = False

    # Roles.

    def lead(
        self,
        topic: str,
        number: int,
        topic_id: bytes,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...],
        partition_epoch: int = 0,
        *,
        make_log: bool = True,
    ) -> Partition:
        """Lead the partition from now on. Its log is created if it is missing and `make_log` allows it; KafkaError if
        there is no log then."""
        partition = self._replica_of(topic, number, topic_id, make_log)
        anew = partition.make_leader(leader_epoch, isr, replicas)
        partition.partition_epoch = partition_epoch
        self._take_in(partition)
        if anew:
            for listener in self.on_leadership:
                listener(topic, number, leader_epoch)
        if partition.shows_flushed_only and partition.log.recovery_point < partition.log.end_offset:
            self.flush_soon(partition)  # recovered records may be acknowledged ones: do not wait for an append
        self.delays.follow(partition)
        self.wake_all(partition.key)
        return partition

    def follow(
        self,
        topic: str,
        number: int,
        topic_id: bytes,
        leader_id: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...],
        partition_epoch: int,
        *,
        make_log: bool = True,
    ) -> Partition:
        """Follow `leader_id` (-1: no leader) from now on. The log is created as in `lead`."""
        partition = self._replica_of(topic, number, topic_id, make_log)
        led = partition.leads
        partition.make_follower(leader_id, leader_epoch, isr, replicas)
        partition.partition_epoch = partition_epoch
        if led:  # after the new leader is set: operations that complete now name it in their answers
            self._resigned(partition)
        self._take_in(partition)
        self.delays.follow(partition)
        self.wake_all(partition.key)
        return partition

    def resign(self, partition: Partition) -> None:
        """Stop leading, if this broker leads. Operations that wait for the partition complete with an error."""
        if partition.leads:
            partition.leads = False
            self._resigned(partition)

    def _resigned(self, partition: Partition) -> None:
        for listener in self.on_leadership:
            listener(partition.topic, partition.number, -1)
        self.wake_all(partition.key)

    def _replica_of(self, topic: str, number: int, topic_id: bytes, make_log: bool) -> Partition:
        partition = self.partitions.get((topic, number))
        if partition is None:
            log = self.logs.create(topic, number, topic_id) if make_log else self.logs.get(topic, number)
            if log is None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "its log directory has just gone offline")
            partition = Partition(log, self.node_id, self._min_isr_of(topic), self._max_lag_ms, self._monotonic_ms)
            partition.on_isr_wanted = self.on_isr_wanted
            partition.is_alive = self.is_alive
            partition.throttled_as_leader, partition.throttled_as_follower = self._throttled(topic, number)
        partition.topic_id = topic_id
        return partition

    def _take_in(self, partition: Partition) -> None:
        known = partition.key in self.partitions
        self.partitions[partition.key] = partition
        self.offline.discard(partition.key)
        log = self.logs.get(*partition.key)
        if log is not None:
            partition.log = log  # it may have moved before the partition was here
        if not known:
            self.moves.resume(partition)

    def stop(self, topic: str, number: int, *, delete: bool) -> None:
        """Remove the replica from this broker. Operations that wait for the partition complete with an error."""
        self.offline.discard((topic, number))
        self.moves.cancel((topic, number))
        self._take_out((topic, number))
        self._take_out((sibling_of(topic), number))
        if delete:
            self.logs.delete(topic, number)

    def directory_failed(self, path: str) -> list[TopicPartition]:
        """Take the replicas of an offline log directory out. Returns their partitions.

        A partition whose sibling was there goes out as well: it can neither accept nor deliver delayed records.
        """
        failed = [partition for partition in self.partitions.values() if partition.log.directory.path == path]
        gone = list(dict.fromkeys(key for each in failed for key in ((each.covers or each).key, each.key)))
        for key in gone:
            if not is_sibling(key[0]):
                self.offline.add(key)  # before operations complete: they look here for the reason
            self.moves.cancel(key)
            self._take_out(key)
        return gone

    def _take_out(self, key: TopicPartition) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.resign(partition)
            self.delays.forget(key)
        self.wake_all(key)

    def reconfigure(self, topic: str) -> None:
        self.logs.reconfigure(topic)
        for partition in list(self.partitions.values()):  # a listener may add a sibling (`schedules.schedules`)
            if partition.topic == topic:
                partition.min_isr = self._min_isr_of(topic)
                self._reconfigured(partition)

    def _reconfigured(self, partition: Partition) -> None:
        throttled = self._throttled(partition.topic, partition.number)
        partition.throttled_as_leader, partition.throttled_as_follower = throttled
        self.delays.follow(partition)
        for listener in self.on_reconfigured:
            listener(partition)
        self.wake_all(partition.key)

    def reconfigure_all(self) -> Steps[None]:
        """As `reconfigure` for every topic, in one pass over the partitions."""
        yield from self.logs.reconfigure_all()
        partitions: dict[str, list[Partition]] = {}
        for partition in self.partitions.values():
            partitions.setdefault(partition.topic, []).append(partition)
        for topic, of_topic in partitions.items():
            min_isr = self._min_isr_of(topic)
            for partition in of_topic:
                partition.min_isr = min_isr
                self._reconfigured(partition)
            yield

    def why_missing(self, topic: str, number: int) -> ErrorCode:
        if (topic, number) in self.offline or (topic, number) in self.logs.unreadable:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def end_of_log(self, topic: str, number: int) -> tuple[int, int] | None:
        """The last leader epoch and the end of a log, which may have no role yet. If delayed records are missing, it
        counts up to the first of them only. (-1, 0): there is no log, as on a replaced disk. None: unknown, because a
        directory is offline."""
        log = self.logs.get(topic, number)
        if log is not None:
            sibling = self.logs.get(sibling_of(topic), number) if log.config.delays_records else None
            if sibling is not None and sibling.end_offset < log.end_offset:
                from ixion.broker.replica.siblings import end_with_notes

                end = end_with_notes(log, sibling)
                return (log.epochs.epoch_of(end - 1) if end > log.log_start else -1, end)
            return (log.epochs.latest, log.end_offset)
        missing = self.why_missing(topic, number) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return NO_LOG if missing and not any(each.state.offline for each in self.logs.directories) else None

    def partition(self, topic: str, number: int) -> Partition | None:
        return self.partitions.get((topic, number))

    # Requests of clients and coordinators.

    def append(
        self,
        timeout_ms: int,
        acks: int,
        origin: Origin,
        entries: Sequence[Entry],
        done: Callable[[list[AppendResult]], None],
        waits: Callable[[GiveUp], None] | None = None,
        checked: Mapping[TopicPartition, CheckedBatch] = NONE_CHECKED,
    ) -> None:
        append(self, timeout_ms, acks, origin, entries, done, waits, checked)

    def fetch(
        self,
        terms: FetchTerms,
        wishes: list[FetchWish],
        done: Callable[[list[FetchResult]], None],
        waits: Callable[[GiveUp], None] | None = None,
    ) -> None:
        fetch(self, terms, wishes, done, waits)

    def delete_records(
        self, timeout_ms: int, offsets: Sequence[tuple[str, int, int]], done: Callable[[list[DeletionResult]], None]
    ) -> None:
        delete_records(self, timeout_ms, offsets, done)

    # Events.

    def appended(self, partition: Partition) -> None:
        self.fetch_purgatory.check_and_complete(partition.key)
        if self.on_readable is not None:
            self.on_readable(partition.key)

    def high_watermark_moved(self, partition: Partition) -> None:
        key = partition.key
        self.produce_purgatory.check_and_complete(key)
        self.fetch_purgatory.check_and_complete(key)
        self.delete_records_purgatory.check_and_complete(key)
        if self.on_readable is not None:
            self.on_readable(key)

    def wake_all(self, key: TopicPartition) -> None:
        self.produce_purgatory.check_and_complete(key)
        self.fetch_purgatory.check_and_complete(key)
        self.delete_records_purgatory.check_and_complete(key)
        self.elect_leader_purgatory.check_and_complete(key)
        if self.on_readable is not None:
            self.on_readable(key)

    def shrink_isr(self) -> None:
        for partition in self.partitions.values():
            partition.shrink_isr()
        self.look_at_followers()

    def look_at_followers(self) -> None:
        """Check the partitions again after a broker died or a follower fell behind: outside the ISR it no longer holds
        back the high watermark or a deletion of records. Clients may wait with all their requests, so no append would
        trigger this."""
        for partition in self.partitions.values():
            if partition.followers:
                if partition.advance_high_watermark():
                    self.high_watermark_moved(partition)
                self.delete_records_purgatory.check_and_complete(partition.key)

    # Flushing, on worker threads.

    def flush_soon(self, partition: Partition) -> None:
        """Flush the whole log; appends that come meanwhile share the next flush."""
        log = partition.log  # not its name: a new topic of that name has another log, which this flush does not cover
        if self._stopped:
            return
        if log in self._flushing:
            self._flushing[log] = True
            return
        self._flushing[log] = False
        schedule = partition.schedule
        flush = log.flush if schedule is None else partial(schedule.flush, log)
        self._loop.run_in_executor(self._workers, flush).add_done_callback(
            lambda done: self._flushed(partition, log, None if done.cancelled() else done.exception())
        )

    def _flushed(self, partition: Partition, log: Log, error: BaseException | None) -> None:
        again = self._flushing.pop(log, False)
        if error is not None:
            self._flush_later(partition, log, error)
        else:
            self._complaints.end(log.name)
            if again and not log.closed:
                self.flush_soon(partition)
        partition.advance_high_watermark()
        self.high_watermark_moved(partition)

    def _flush_later(self, partition: Partition, log: Log, error: BaseException) -> None:
        """Flush again later: otherwise operations that wait for this flush would wait for the next append."""
        if log in self._to_flush_again or log.closed or log.directory.offline:
            return
        reason = "flushing %s: %s; trying again every %d ms"
        self._complaints.add(log.name, logging.ERROR, reason, log.name, error, FLUSH_RETRY_MS)
        self._to_flush_again.add(log)
        self._timer.call_later(FLUSH_RETRY_MS, lambda: self._flush_again(partition, log))

    def _flush_again(self, partition: Partition, log: Log) -> None:
        self._to_flush_again.discard(log)
        if partition.log is log:
            self.flush_soon(partition)

    def flush_sealed_soon(self, partition: Partition) -> None:
        """Flush a segment that was just sealed, in the background."""
        log = partition.log
        if self._stopped:
            return

        def flush() -> None:
            try:
                log.flush(log.segments.active.base_offset)
            except KafkaError as error:
                logger.error("flushing %s: %s", log.name, error)

        self._loop.run_in_executor(self._workers, flush)

    def _arrived(self, log: Log) -> None:
        """On the thread of a move: the log replaces one in another directory. Operations that wait for the lock of the
        old one read this again."""
        replica = self.partitions.get((log.topic, log.partition))
        if replica is not None:
            replica.log = log
            if replica.covers is not None and replica.covers.schedule is not None:
                replica.covers.schedule.sibling_moved(log)

    def _moved(self, partition: Partition) -> None:
        """A move of the partition to another directory has ended."""
        if self.partitions.get(partition.key) is not partition:
            return
        for listener in self.on_moved:
            listener(partition)
        partition.advance_high_watermark()
        self.delays.follow(partition)
        self.wake_all(partition.key)

    def shutdown(self) -> None:
        """Stops the purgatories, and begins no more flushes: their threads stop next."""
        self._stopped = True
        self.fair_workers.stop()
        for purgatory in (
            self.produce_purgatory,
            self.fetch_purgatory,
            self.delete_records_purgatory,
            self.elect_leader_purgatory,
        ):
            purgatory.shutdown()
