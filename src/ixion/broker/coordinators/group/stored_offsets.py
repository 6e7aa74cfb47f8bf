"""Reading committed offsets back, and deleting them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ixion.broker.coordinators.group.classic.group import CONSUMER, ClassicGroup
from ixion.broker.coordinators.group.classic.states import DEAD, EMPTY
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.records import group_tombstones
from ixion.broker.coordinators.group.consumer.rules import check_offset_use
from ixion.broker.coordinators.group.consumer.states import ConsumerGroupState
from ixion.broker.coordinators.group.journal import Journal
from ixion.broker.coordinators.group.offsets import Committed, GroupOffsets
from ixion.broker.coordinators.group.records import group_tombstone, offset_tombstone
from ixion.broker.coordinators.group.shard import Group, GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.share.records import group_tombstones as share_tombstones
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.records import group_tombstones as streams_tombstones
from ixion.broker.coordinators.group.streams.rules import check_offset_use as check_task_use
from ixion.broker.coordinators.group.streams.states import StreamsGroupState
from ixion.broker.coordinators.log_codes import GROUP_CODES
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Steps

FORGET_AT_ONCE: Final = 500  # partitions; a millisecond or two
# After these codes the records may be in the log, and may yet be replicated.
IN_THE_LOG: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})

GONE: Final = frozenset({DEAD, ConsumerGroupState.DEAD, StreamsGroupState.DEAD})

# A partition, its committed offset (None: none) and a code.
Found = tuple[TopicPartition, Committed | None, ErrorCode]


class OffsetReader(NamedTuple):
    """The group whose offsets are read, and for a consumer or streams group the member that reads them."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1


class StoredOffsets:
    def __init__(self, shards: Shards, journal: Journal) -> None:
        self._shards = shards
        self._journal = journal

    def fetch(
        self, reader: OffsetReader, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
    ) -> Steps[list[Found] | ErrorCode]:
        """All offsets if `partitions` is None. With `require_stable`, a partition with a pending offset gets
        UNSTABLE_OFFSET_COMMIT.

        So does every partition of a group with a commit that is not replicated yet. This broker may no longer lead the
        partition without knowing it, and the new leader may have the same commit in a transaction that is complete by
        now.
        """
        shard = self._shards.find(reader.group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(reader.group_id)
        if isinstance(group, ConsumerGroup) and (reader.member_id is not None or reader.member_epoch >= 0):
            code = check_offset_use(group, reader.member_id or "", reader.member_epoch)
            if code is not ErrorCode.NONE:
                return code
        if isinstance(group, StreamsGroup) and (reader.member_id is not None or reader.member_epoch >= 0):
            code = check_task_use(group, reader.member_id or "", reader.member_epoch)
            if code is not ErrorCode.NONE:
                return code
        offsets = shard.offsets.get(reader.group_id)
        committed: Mapping[TopicPartition, Committed] = {} if offsets is None else offsets.committed
        pending = offsets is not None and require_stable and bool(offsets.pending)
        unstable = _pending(offsets) if offsets is not None and pending else set()
        end = shard.awaited_end(reader.group_id)
        all_unstable = require_stable and end > 0 and not self._journal.is_replicated(shard.partition, end)
        found: list[Found] = []
        for partition in list(committed) if partitions is None else partitions:
            if all_unstable or partition in unstable:
                found.append((partition, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                found.append((partition, committed.get(partition), ErrorCode.NONE))
            yield
        return found

    def delete(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        done: Callable[[ErrorCode, list[ErrorCode]], None],
    ) -> None:
        """A code for the group, and if that is NONE one for each partition."""
        shard = self._shards.find(group_id)
        if not group_id:
            done(ErrorCode.INVALID_GROUP_ID, [])
        elif isinstance(shard, ErrorCode):
            done(shard, [])
        else:
            group = shard.groups.get(group_id)
            if group is None or isinstance(group, ShareGroup) or group.state in GONE:
                done(ErrorCode.GROUP_ID_NOT_FOUND, [])
            elif isinstance(group, ClassicGroup) and group.state is not EMPTY and group.protocol_type != CONSUMER:
                done(ErrorCode.NON_EMPTY_GROUP, [])
            else:
                codes = [
                    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.members and group.reads(topic) else ErrorCode.NONE
                    for topic, _ in partitions
                ]
                free = [each for each, code in zip(partitions, codes, strict=True) if code is ErrorCode.NONE]
                self.forget(shard, group_id, free, lambda code: done(code, codes))

    def forget(
        self, shard: GroupShard, group_id: str, partitions: Iterable[TopicPartition], done: Callable[[ErrorCode], None]
    ) -> None:
        """Write tombstones for those partitions that the group has offsets of."""
        offsets = shard.offsets.get(group_id)
        coming = shard.in_flight.partitions(group_id)
        known = [
            partition
            for partition in partitions
            if partition in coming or (offsets is not None and offsets.knows(partition))
        ]
        overtaken = shard.in_flight.of(group_id)

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                for partition in known:
                    shard.forget_offset(group_id, partition)
                for flight in overtaken:
                    flight.buried.update(flight.partitions.intersection(known))
            done(GROUP_CODES.get(code, code))

        self._journal.write_change(
            shard.partition, [offset_tombstone(group_id, partition) for partition in known], written
        )

    def forget_steps(
        self, shard: GroupShard, group_id: str, partitions: Sequence[TopicPartition], done: Callable[[ErrorCode], None]
    ) -> Steps[None]:
        """As `forget`, for any number of partitions, in pieces; each piece is a write of its own."""
        for first in range(0, len(partitions), FORGET_AT_ONCE):
            if self._shards.holds(shard):
                self.forget(shard, group_id, partitions[first : first + FORGET_AT_ONCE], done)
            yield

    def forget_group(self, shard: GroupShard, group: Group, done: Callable[[ErrorCode], None]) -> None:
        """Write tombstones for the group and all of its offsets.

        The group is gone at once: a member that joins now, or a commit, comes after the tombstones in the log and makes
        a new one. If the tombstones cannot be written, the group comes back.
        """
        group_id = group.group_id
        del shard.groups[group_id]
        offsets = shard.offsets.pop(group_id, None)
        overtaken = shard.in_flight.of(group_id)
        known = set(() if offsets is None else offsets.partitions()) | shard.in_flight.partitions(group_id)
        records = [offset_tombstone(group_id, partition) for partition in sorted(known)]
        for flight in overtaken:
            flight.buried.update(flight.partitions)
        if isinstance(group, ConsumerGroup):
            records.extend(group_tombstones(group))
        elif isinstance(group, ShareGroup):
            records.extend(share_tombstones(group))
        elif isinstance(group, StreamsGroup):
            records.extend(streams_tombstones(group))
        elif group.protocol_type is not None:
            records.append(group_tombstone(group_id))

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and self._shards.holds(shard):
                is_as_before = group_id not in shard.groups and group_id not in shard.offsets
                if code in IN_THE_LOG or overtaken or not is_as_before:
                    self._shards.reload(shard)
                else:
                    shard.groups[group_id] = group
                    if offsets is not None:
                        shard.offsets[group_id] = offsets
            done(GROUP_CODES.get(code, code))

        self._journal.write_change(shard.partition, records, written)


def _pending(offsets: GroupOffsets) -> set[TopicPartition]:
    return {partition for pending in offsets.pending.values() for partition in pending}
