"""The group coordinator: builds its parts, and starts, feeds and stops them.

    classic    join, sync, heartbeat, leave            the classic protocol
    consumer   heartbeat, describe                     the consumer protocol (KIP-848)
    share      heartbeat, describe, offsets            share groups (KIP-932)
    streams    heartbeat, describe                     streams groups (KIP-1071)
    commits    commit                                  offsets into the log
    offsets    fetch, delete                           offsets out of it
    admin      list, describe, delete                  groups as seen from outside

Everything happens on the broker's event loop. Every change is in the log before the request is answered.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ixion.broker.coordinators.group.admin import Admin
from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.join import Joining, random_id
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic_protocol import ClassicProtocol
from ixion.broker.coordinators.group.commits import Answered, Commits, Committer, Wanted
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.limits import GroupConfig
from ixion.broker.coordinators.group.consumer_protocol import ConsumerProtocol
from ixion.broker.coordinators.group.doubt import Doubt, Lease
from ixion.broker.coordinators.group.expiry import expired
from ixion.broker.coordinators.group.journal import Journal
from ixion.broker.coordinators.group.offsets import GroupOffsets
from ixion.broker.coordinators.group.records import group_record
from ixion.broker.coordinators.group.shard import Group, GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.share.offsets import ShareOffsets
from ixion.broker.coordinators.group.share.states import ShareStates
from ixion.broker.coordinators.group.share_protocol import ShareProtocol
from ixion.broker.coordinators.group.stored_offsets import FORGET_AT_ONCE, StoredOffsets
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams_protocol import StreamsProtocol
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.broker.coordinators.log_codes import GROUP_CODES
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.config import group_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.config.share_group import ShareGroupSettings
from ixion.config.streams_group import StreamsGroupSettings
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.purgatory import DelayedOperationPurgatory
from ixion.timer.lane import Lane
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.task import TimerTask
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

MS_PER_MINUTE = 60_000


def no_share_states() -> ShareStates:
    raise AssertionError("without share.version there are no share groups")


class GroupCoordinator:
    def __init__(
        self,
        log: CoordinatorLog,
        *,
        timer: LoopTimer,
        clock_ms: Callable[[], int],
        config: DynamicConfig,
        topics: TopicLookup,
        group_config: GroupConfig = lambda _: {},
        version: Callable[[], int] = lambda: 1,
        new_id: Callable[[str], str] = random_id,
        lease: Lease = lambda: 0,
        share_states: Callable[[], ShareStates] = no_share_states,
        share_version: Callable[[], int] = lambda: 0,
        streams_version: Callable[[], int] = lambda: 0,
    ) -> None:
        """`version`, `share_version` and `streams_version` are the present levels of group.version, share.version and
        streams.version; for `lease` see `doubt`."""
        self._timer = timer
        self._clock_ms = clock_ms
        self._config = config
        self._journal = Journal(log, clock_ms)
        self.rebalance = Rebalance(config=config, timer=timer, clock_ms=clock_ms, store=self._store)
        call_soon = timer.loop.call_soon
        self.shards = Shards(
            log,
            clock_ms=clock_ms,
            timer=timer,
            on_loaded=self._on_loaded,
            on_unloaded=self._on_unloaded,
        )
        self.doubt = Doubt(self.shards, log, timer, lease)
        joining = Joining(self.rebalance, config, new_id)
        self.consumer = ConsumerProtocol(
            self.shards,
            self._journal,
            self.rebalance,
            topics,
            config,
            timer=timer,
            clock_ms=clock_ms,
            group_config=group_config,
            version=version,
            new_id=new_id,
        )
        self.streams = StreamsProtocol(
            self.shards,
            self._journal,
            self.rebalance,
            topics,
            StreamsGroupSettings(lambda: config.current, group_config),
            timer=timer,
            clock_ms=clock_ms,
            version=streams_version,
        )
        self.classic = ClassicProtocol(
            self.shards, self.rebalance, joining, self.consumer, self.streams, clock_ms=clock_ms, call_soon=call_soon
        )
        self.commits = Commits(self.shards, self._journal, self.rebalance, config, topics, clock_ms)
        self.offsets = StoredOffsets(self.shards, self._journal)
        self.share = ShareProtocol(
            self.shards,
            self._journal,
            self.rebalance.bounds,
            topics,
            share_states,
            ShareGroupSettings(lambda: config.current, group_config),
            timer=timer,
            clock_ms=clock_ms,
            version=share_version,
        )
        self.share_offsets = ShareOffsets(self.share, topics, share_states)
        self.admin = Admin(self.shards, self.rebalance, self.consumer, self.share, self.streams, self.offsets)
        self._cleanup: TimerTask | None = None
        self._sweeps = Lane(partial(timer.call_later, 0), fair=True)
        self._is_expiring = False

    @property
    def purgatories(self) -> tuple[DelayedOperationPurgatory, ...]:
        """The purgatories of rebalances and of heartbeats."""
        return self.rebalance.heartbeat_purgatory, self.rebalance.rebalance_purgatory

    def count_states(self) -> Steps[Mapping[str, int]]:
        """How many groups are in each state."""
        found: Counter[str] = Counter()
        for shard in self.shards:
            for group in [] if shard.loading else list(shard.groups.values()):
                found[group.state.value] += 1
                yield
        return found

    def start(self) -> None:
        """Start to expire old offsets at intervals."""
        interval_ms = self._config.current[settings.OFFSETS_RETENTION_CHECK_INTERVAL_MS]
        self._cleanup = self._timer.call_later(interval_ms, self._clean_up)

    def stop(self) -> None:
        if self._cleanup is not None:
            self._cleanup.cancel()
            self._cleanup = None
        for shard in self.shards:
            self.shards.resign(shard.partition)
        self.consumer.stop()
        self.share.stop()
        self.streams.stop()
        for purgatory in self.purgatories:
            purgatory.shutdown()

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        """Load a partition of __consumer_offsets that this broker now leads."""
        known = self.shards.at(partition)
        self.shards.elect(partition, leader_epoch)
        shard = self.shards.at(partition)
        if shard is not None and shard is not known:
            self.doubt.elected(shard)

    def on_resigned(self, partition: int) -> None:
        self.shards.resign(partition)

    def commit_transactional(self, committer: Committer, wanted: Sequence[Wanted], done: Answered) -> None:
        """Write offsets that take effect when the transaction of `committer.producer_id` commits.

        The caller has verified that the producer may add to its transaction.
        """
        self.commits.commit(committer, wanted, done)

    def on_transaction_marker(self, partition: int, producer_id: int, committed: bool) -> None:
        """A transaction has ended in a partition of __consumer_offsets: apply or drop its offsets."""
        shard = self.shards.at(partition)
        if shard is not None:
            shard.end_transaction(producer_id, committed)

    def on_topics_deleted(self, names: Iterable[str]) -> None:
        """Forget offsets of deleted topics: a new topic of the same name starts without."""
        self._sweeps.run(self._forget_topics(frozenset(names), self._clock_ms()), _log_error)
        self._sweeps.run(self.share.forget_topics(), _log_error)

    def expire_offsets(self) -> None:
        """Forget offsets older than offsets.retention.minutes, unless an earlier call still runs."""
        if not self._is_expiring:
            self._is_expiring = True
            self._sweeps.run(self._expire_all(), self._swept)

    def _swept(self, _: None, error: Exception | None) -> None:
        self._is_expiring = False
        _log_error(None, error)

    def _forget_topics(self, gone: frozenset[str], before_ms: int) -> Steps[None]:
        """Forget offsets of these topics committed before `before_ms`; later ones belong to a new topic."""
        for shard in self.shards:
            for group_id, offsets in list(shard.offsets.items()):
                if self.shards.holds(shard):
                    partitions = [
                        partition
                        for partition in offsets.partitions()
                        if partition[0] in gone
                        and offsets.is_committed_before(partition, before_ms)
                        and not shard.in_flight.has(group_id, partition, before_ms)
                    ]
                    yield from self.offsets.forget_steps(shard, group_id, partitions, _log_failure)
                yield

    def _expire_all(self) -> Steps[None]:
        now_ms = self._clock_ms()
        retention_ms = self._config.current[settings.OFFSETS_RETENTION_MINUTES] * MS_PER_MINUTE
        for shard in self.shards:
            for group in [] if shard.loading else list(shard.groups.values()):
                if self.shards.holds(shard) and shard.groups.get(group.group_id) is group:
                    yield from self._expire(shard, group, now_ms, retention_ms)
                yield

    def _expire(self, shard: GroupShard, group: Group, now_ms: int, retention_ms: int) -> Steps[None]:
        group_id = group.group_id
        offsets = shard.offsets.get(group_id)
        if offsets is not None and len(offsets.committed) > FORGET_AT_ONCE:
            # Too many for one turn: remove them in pieces, before the group.
            old = self._expired_of(shard, group, offsets, now_ms, retention_ms)
            yield from self.offsets.forget_steps(shard, group_id, old, _log_failure)
            offsets = shard.offsets.get(group_id)
            if not self.shards.holds(shard) or shard.groups.get(group_id) is not group:
                return
        old = [] if offsets is None else self._expired_of(shard, group, offsets, now_ms, retention_ms)
        nothing_left = offsets is None or (len(old) == len(offsets.committed) and not offsets.pending)
        nothing_left = nothing_left and not shard.in_flight.of(group_id)
        is_empty = not group.members and not (isinstance(group, ClassicGroup) and group.is_awaited)
        if isinstance(group, ShareGroup):
            return  # it has its offsets elsewhere, and stays until an administrator deletes it, as in Kafka
        if nothing_left and is_empty:
            self.admin.delete(group_id, _log_failure)
        elif old:
            self.offsets.forget(shard, group_id, old, _log_failure)

    def _expired_of(
        self, shard: GroupShard, group: Group, offsets: GroupOffsets, now_ms: int, retention_ms: int
    ) -> list[TopicPartition]:
        coming = shard.in_flight.partitions(group.group_id)
        return [each for each in expired(group, offsets, now_ms, retention_ms) if each not in coming]

    def _clean_up(self) -> None:
        self.expire_offsets()
        self.start()

    def _store(self, group: ClassicGroup, assignments: Mapping[str, bytes], done: Callable[[ErrorCode], None]) -> None:
        partition = self.shards.partition_for(group.group_id)
        self._journal.write(
            partition, [group_record(group, assignments)], lambda code, _: done(GROUP_CODES.get(code, code))
        )

    def _on_loaded(self, group: Group) -> None:
        if isinstance(group, ShareGroup):
            self.share.resume(group)
        elif isinstance(group, StreamsGroup):
            self.streams.resume(group)
        elif isinstance(group, ConsumerGroup):
            self.consumer.resume(group)
        else:
            self.rebalance.resume(group)

    def _on_unloaded(self, group: Group) -> None:
        if isinstance(group, ShareGroup):
            self.share.unload(group)
        elif isinstance(group, StreamsGroup):
            self.streams.unload(group)
        elif isinstance(group, ConsumerGroup):
            self.consumer.unload(group)
        else:
            self.rebalance.unload(group, ErrorCode.NOT_COORDINATOR)


def _log_error(_: None, error: Exception | None) -> None:
    if error is not None:
        logger.error("removing old offsets failed", exc_info=error)


def _log_failure(code: ErrorCode) -> None:
    if code is not ErrorCode.NONE:
        logger.warning("old offsets could not be removed from the log: %s", code.name)
