"""The share partitions of a group: their states are initialized before a member gets them, and deleted with the group.

    initialize    write that they are being initialized (record 15); ask the share coordinator; write that they are
    delete        write that their topics are being deleted; ask the share coordinator; write that they are gone

If the broker stops in between, the log says what was begun: the next heartbeat initializes again, which changes nothing
that a member has seen, and a deletion is repeated when the group is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.consumer_writes import ConsumerWrites
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share.group import KnownTopic, Partition, ShareGroup
from ixion.broker.coordinators.group.share.records import epoch_record, partitions_record
from ixion.broker.coordinators.group.share.states import Answered, ShareStates
from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.broker.replica.share_persister import NO_OFFSET, SharePartitionKey
from ixion.language.model.errors import ErrorCode
from ixion.timer.lane import Lane
from ixion.timer.turns import Steps

PARTITION_ADDED: Final = 0  # the start offset of a partition that was added to a topic which the group reads already


class SharePartitions:
    def __init__(
        self,
        shards: Shards,
        writes: ConsumerWrites,
        topics: TopicLookup,
        states: Callable[[], ShareStates],
        lane: Lane,
    ) -> None:
        self._shards = shards
        self._writes = writes
        self._topics = topics
        self._states = states
        self._lane = lane

    def begin(self, group: ShareGroup) -> list[tuple[Partition, int]]:
        """Note which partitions are to be initialized: each with its start offset. The caller writes record 15."""
        wanted: list[tuple[Partition, int]] = []
        for topic, numbers in group.missing(self._topics):
            known = group.known.setdefault(topic.topic_id, KnownTopic(topic.name))
            start = PARTITION_ADDED if known.initialized else NO_OFFSET
            wanted += [((topic.topic_id, number), start) for number in numbers]
            known.initializing.update(numbers)
        return wanted

    def initialize(
        self, shard: GroupShard, group: ShareGroup, wanted: Sequence[tuple[Partition, int]], done: Callable[[], None]
    ) -> None:
        """Record 15 is written. `done` is called when all that could be initialized is, also in the log."""
        group.is_initializing = True
        epoch = group.epoch

        def each(place: int, answered: Answered) -> None:
            (topic_id, number), start = wanted[place]
            self._begin_state(SharePartitionKey(group.group_id, topic_id, number), epoch, start, answered)

        def initialized(codes: list[ErrorCode]) -> None:
            group.is_initializing = False
            if not self._is_here(shard, group):
                done()
                return
            for ((topic_id, number), _), code in zip(wanted, codes, strict=True):
                topic = group.known.get(topic_id)
                if code is ErrorCode.NONE and topic is not None:
                    topic.initializing.discard(number)
                    topic.initialized.add(number)
            if any(codes):
                group.seen_version = -1  # the next heartbeat tries again
            records = [partitions_record(group)]
            if group.epoch == group.assignment_epoch:  # targets without them were computed meanwhile
                group.epoch += 1
                records.append(epoch_record(group))
            self._writes.write(shard, records, None, lambda _: done(), lambda _: None)

        self._all(len(wanted), each, initialized)

    def delete(self, shard: GroupShard, group: ShareGroup, topic_ids: Collection[bytes], done: Answered) -> None:
        """Delete the states of these topics. With an error they are still being deleted, until the next attempt."""
        for topic_id in topic_ids:
            known = group.known.pop(topic_id, None)
            if known is not None:
                group.deleting[topic_id] = known.name
        group.seen_version = -1
        going = [topic_id for topic_id in topic_ids if topic_id in group.deleting]
        wanted: list[Partition] = []
        for topic_id in going:
            topic = self._topics.by_id(topic_id)  # a topic that is gone has no states
            wanted += [(topic_id, number) for number in range(0 if topic is None else topic.partitions)]

        def each(place: int, answered: Answered) -> None:
            self._states().delete(SharePartitionKey(group.group_id, *wanted[place]), answered)

        def deleted(codes: list[ErrorCode]) -> None:
            failed = {wanted[place][0]: code for place, code in enumerate(codes) if code}
            if not self._is_here(shard, group):
                done(ErrorCode.NOT_COORDINATOR)
                return
            for topic_id in going:
                if topic_id not in failed:
                    group.deleting.pop(topic_id, None)
            result = next(iter(failed.values()), ErrorCode.NONE)
            self._writes.write(shard, [partitions_record(group)], result, done, lambda code: code)

        def written(code: ErrorCode) -> None:
            if code:
                done(code)
            else:
                self._all(len(wanted), each, deleted)

        self._writes.write(shard, [partitions_record(group)], ErrorCode.NONE, written, lambda code: code)

    def alter(
        self,
        shard: GroupShard,
        group: ShareGroup,
        wanted: Sequence[tuple[Partition, int]],
        done: Callable[[list[ErrorCode]], None],
    ) -> None:
        """Set start offsets: a higher group epoch fences what leaders have. `done` gets a code for each partition."""
        group.epoch += 1
        epoch = group.epoch
        for (topic_id, number), _ in wanted:
            topic = self._topics.by_id(topic_id)
            known = group.known.setdefault(topic_id, KnownTopic("" if topic is None else topic.name))
            if number not in known.initialized:
                known.initializing.add(number)

        def each(place: int, answered: Answered) -> None:
            (topic_id, number), start = wanted[place]
            self._states().initialize(SharePartitionKey(group.group_id, topic_id, number), epoch, start, answered)

        def altered(codes: list[ErrorCode]) -> None:
            for ((topic_id, number), _), code in zip(wanted, codes, strict=True):
                topic = group.known.get(topic_id)
                if code is ErrorCode.NONE and topic is not None:
                    topic.initializing.discard(number)
                    topic.initialized.add(number)
            if self._is_here(shard, group):
                record = partitions_record(group)
                self._writes.write(shard, [record], codes, done, lambda code: [each or code for each in codes])
            else:
                done([code or ErrorCode.NOT_COORDINATOR for code in codes])

        def written(code: ErrorCode) -> None:
            if code:
                done([code] * len(wanted))
            else:
                self._all(len(wanted), each, altered)

        records = [epoch_record(group), partitions_record(group)]
        self._writes.write(shard, records, ErrorCode.NONE, written, lambda code: code)

    def forget(self, shard: GroupShard, group: ShareGroup) -> None:
        """Drop topics that are gone from the cluster; the share coordinator has deleted their states."""
        gone = [topic_id for topic_id in (*group.known, *group.deleting) if self._topics.by_id(topic_id) is None]
        for topic_id in gone:
            group.known.pop(topic_id, None)
            group.deleting.pop(topic_id, None)
        if gone:
            self._writes.write_quietly(shard, [partitions_record(group)])

    def _begin_state(self, key: SharePartitionKey, epoch: int, start: int, answered: Answered) -> None:
        """A state with a higher epoch belongs to an earlier group of this name, and is deleted first."""
        states = self._states()

        def deleted(code: ErrorCode) -> None:
            if code:
                answered(code)
            else:
                states.initialize(key, epoch, start, answered)

        def begun(code: ErrorCode) -> None:
            if code is ErrorCode.FENCED_STATE_EPOCH:
                states.delete(key, deleted)
            else:
                answered(code)

        states.initialize(key, epoch, start, begun)

    def _is_here(self, shard: GroupShard, group: ShareGroup) -> bool:
        return self._shards.holds(shard) and shard.groups.get(group.group_id) is group

    def _all(self, count: int, each: Callable[[int, Answered], None], done: Callable[[list[ErrorCode]], None]) -> None:
        """Ask `count` times, in turns of the loop; `done` gets all codes."""
        codes = [ErrorCode.NONE] * count
        left = 1

        def answered(place: int, code: ErrorCode) -> None:
            nonlocal left
            codes[place] = code
            finished()

        def finished() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done(codes)

        def steps() -> Steps[None]:
            nonlocal left
            for place in range(count):
                left += 1
                each(place, partial(answered, place))
                yield

        self._lane.run(steps(), lambda *_: finished())
