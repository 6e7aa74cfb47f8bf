"""Committing offsets: checked against the group, written to the log, remembered, then answered."""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic.rules import check_commit
from ixion.broker.coordinators.group.classic.states import COMPLETING_REBALANCE, EMPTY
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.rules import check_offset_use
from ixion.broker.coordinators.group.in_flight import Flight
from ixion.broker.coordinators.group.journal import Journal
from ixion.broker.coordinators.group.offsets import NO_EXPIRY, Committed
from ixion.broker.coordinators.group.records import offset_record
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.rules import check_offset_use as check_task_use
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.broker.coordinators.log_codes import COMMIT_CODES
from ixion.config import group_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

LATEST_MS: Final = 2**63 - 1  # no time of the protocol is later


class Wanted(NamedTuple):
    """An offset to be committed."""

    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str | None


class Committer(NamedTuple):
    """The member that commits, with its generation, or a client that is not a member (-1, "")."""

    group_id: str
    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1  # or member epoch
    producer_id: int = NO_PRODUCER_ID  # of the transaction, if it is part of one
    producer_epoch: int = NO_PRODUCER_EPOCH
    knows_epochs: bool = True  # False: the version of the request is older than consumer groups

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


Answered = Callable[[list[ErrorCode]], None]  # in the order of the request


class Commits:
    def __init__(
        self,
        shards: Shards,
        journal: Journal,
        rebalance: Rebalance,
        config: DynamicConfig,
        topics: TopicLookup,
        clock_ms: Callable[[], int],
    ) -> None:
        self._shards = shards
        self._journal = journal
        self._rebalance = rebalance
        self._config = config
        self._topics = topics
        self._clock_ms = clock_ms

    def commit(self, committer: Committer, wanted: Sequence[Wanted], done: Answered, *, retention_ms: int = -1) -> None:
        """A `retention_ms` of -1 means the broker's setting."""
        shard = self._shards.find_for(committer.group_id)
        if isinstance(shard, ErrorCode):
            done([shard] * len(wanted))
            return
        code = self._check(shard, committer, wanted)
        if code is not ErrorCode.NONE:
            done([code] * len(wanted))
            return
        self._write(shard, committer, wanted, done, retention_ms)

    def _check(self, shard: GroupShard, committer: Committer, wanted: Sequence[Wanted]) -> ErrorCode:
        group = shard.groups.get(committer.group_id)
        if group is None:
            if committer.generation >= 0:
                return ErrorCode.GROUP_ID_NOT_FOUND if committer.knows_epochs else ErrorCode.ILLEGAL_GENERATION
            return ErrorCode.NONE  # a consumer that assigns its own partitions and only stores offsets
        if isinstance(group, ShareGroup):
            return ErrorCode.GROUP_ID_NOT_FOUND  # its offsets are at the share coordinator
        if isinstance(group, ConsumerGroup | StreamsGroup):
            if committer.generation < 0 and not group.members:
                return ErrorCode.NONE
            if committer.is_transactional and committer.generation < 0 and not committer.member_id:
                return ErrorCode.NONE
            is_old = not committer.knows_epochs
            if isinstance(group, StreamsGroup):
                is_modern = committer.member_id in group.members
                partitions = [each.partition for each in wanted]
                code = check_task_use(group, committer.member_id, committer.generation, partitions)
            else:
                member = group.members.get(committer.member_id)
                is_modern = member is not None and not member.is_classic
                code = check_offset_use(group, committer.member_id, committer.generation, self._ids_of(wanted))
            if is_modern and is_old and not committer.is_transactional:
                return ErrorCode.UNSUPPORTED_VERSION
            if committer.is_transactional and is_old and code is ErrorCode.STALE_MEMBER_EPOCH:
                return ErrorCode.ILLEGAL_GENERATION  # producers know STALE_MEMBER_EPOCH from version 6 on
            return code
        code = check_commit(
            group, committer.member_id, committer.instance_id, committer.generation, committer.is_transactional
        )
        if code is not ErrorCode.NONE or committer.is_transactional or group.state is EMPTY:
            return code
        if group.state is COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS  # it has the generation, but not its assignment yet
        self._rebalance.heartbeats.renew(group, group.members[committer.member_id])
        return code

    def _ids_of(self, wanted: Iterable[Wanted]) -> Iterator[tuple[bytes, int]]:
        for each in wanted:
            name, number = each.partition
            topic = self._topics.by_name(name)
            yield b"" if topic is None else topic.topic_id, number

    def _write(
        self, shard: GroupShard, committer: Committer, wanted: Sequence[Wanted], done: Answered, retention_ms: int
    ) -> None:
        if not self._journal.has_room_for(shard.partition, len(wanted)):
            done([ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * len(wanted))
            return
        now_ms = self._clock_ms()
        expire_ms = NO_EXPIRY if retention_ms < 0 else min(now_ms + retention_ms, LATEST_MS)
        limit = self._config.current[settings.OFFSET_METADATA_MAX_BYTES]
        group_id, producer_id = committer.group_id, committer.producer_id
        codes = [ErrorCode.NONE] * len(wanted)
        taken: list[tuple[int, TopicPartition, Committed]] = []
        for index, (partition, offset, leader_epoch, metadata) in enumerate(wanted):
            text = metadata or ""
            if len(text) > limit:
                codes[index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                taken.append((index, partition, Committed(offset, leader_epoch, text, now_ms, expire_ms, -1)))
        if not taken:
            done(codes)
            return
        is_written = False
        flight: Flight | None = None  # None: it is replicated at once

        def written(code: ErrorCode, first_offset: int) -> None:
            nonlocal is_written
            is_written = True
            buried: Collection[TopicPartition] = ()
            if flight is not None:
                shard.in_flight.end(flight)
                buried = flight.buried
            if code is not ErrorCode.NONE:
                told = COMMIT_CODES.get(code, code)
                for index, _, _ in taken:
                    codes[index] = told
                done(codes)
                return
            if group_id not in shard.groups and (flight is None or flight.buried != flight.partitions):
                shard.groups[group_id] = ClassicGroup(group_id, now_ms)
            shard.replicated(group_id, first_offset + len(taken))
            for place, (_, partition, value) in enumerate(taken, first_offset):
                if partition in buried:
                    continue
                placed = value._replace(record_offset=place)
                if producer_id == NO_PRODUCER_ID:
                    shard.commit(group_id, partition, placed)
                else:
                    shard.commit_pending(group_id, producer_id, partition, placed)
            done(codes)

        self._journal.write(
            shard.partition,
            [offset_record(group_id, partition, value) for _, partition, value in taken],
            written,
            producer_id=producer_id,
            producer_epoch=committer.producer_epoch,
        )
        if not is_written:
            flight = shard.in_flight.begin(group_id, [partition for _, partition, _ in taken], now_ms)
            shard.wait_for_replicas(group_id, self._journal.end(shard.partition))
