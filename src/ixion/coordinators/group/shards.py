"""The partitions of __consumer_offsets that this broker leads, loaded or being loaded.

Loading reads the whole partition, a slice of batches at a time, so that requests of other groups go on being served. A
small partition is there at once. Until then its groups answer COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from ixion.coordinators.group.classic.group import ClassicGroup
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.replay import replay_batch
from ixion.coordinators.group.shard import Shard
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.batch import BatchView
from ixion.replica.coordinator_log import CoordinatorLog

logger = logging.getLogger(__name__)

MAX_REMEMBERED: Final = 10_000
SLICE: Final = 200  # batches read before others get their turn


class Shards:
    def __init__(
        self,
        log: CoordinatorLog,
        *,
        clock_ms: Callable[[], int],
        call_soon: Callable[..., object],
        on_loaded: Callable[[Shard], None],
        on_unloaded: Callable[[Shard], None],
    ) -> None:
        self._log = log
        self._clock_ms = clock_ms
        self._call_soon = call_soon
        self._on_loaded = on_loaded
        self._on_unloaded = on_unloaded
        self._shards: dict[int, Shard] = {}
        self._places: dict[str, int] = {}  # the partitions of groups that were asked for

    def __iter__(self) -> Iterator[Shard]:
        return iter(list(self._shards.values()))

    @property
    def is_loading(self) -> bool:
        return any(shard.loading for shard in self._shards.values())

    def partition_for(self, group_id: str) -> int:
        """Remembered, because the hash of a name is computed character by character."""
        known = self._places.get(group_id)
        if known is None:
            if len(self._places) >= MAX_REMEMBERED:
                self._places.clear()
            known = self._places[group_id] = self._log.partition_for(group_id)
        return known

    def at(self, partition: int) -> Shard | None:
        return self._shards.get(partition)

    def find(self, group_id: str) -> Shard | ErrorCode:
        """Where the group lives, or why that cannot be said here and now."""
        shard = self._shards.get(self.partition_for(group_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def elect(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition from now on. An epoch that is not new says nothing."""
        self._places.clear()  # the topic may have been made just now, with a number of partitions of its own
        known = self._shards.get(partition)
        if known is not None:
            if leader_epoch <= known.leader_epoch:
                return
            self.resign(partition)
        shard = self._shards[partition] = Shard(partition, leader_epoch)
        self._load(shard, self._log.read(partition))

    def resign(self, partition: int) -> None:
        shard = self._shards.pop(partition, None)
        if shard is not None and not shard.loading:
            self._on_unloaded(shard)

    def reload(self, shard: Shard) -> None:
        """What is in memory is not what is in the log: begin again from there."""
        if self._shards.get(shard.partition) is shard:
            self.resign(shard.partition)
            self.elect(shard.partition, shard.leader_epoch)

    def _load(self, shard: Shard, batches: Iterator[BatchView]) -> None:
        if self._shards.get(shard.partition) is not shard:
            return  # resigned meanwhile
        count = 0
        try:
            for batch in islice(batches, SLICE):
                replay_batch(shard, batch)
                count += 1
        except KafkaError:
            # What is known of the groups would be wrong from here on; better not to serve them.
            logger.exception(
                "partition %d of the group offsets cannot be read; its groups are not served", shard.partition
            )
            self._shards.pop(shard.partition, None)
            return
        if count == SLICE:
            self._call_soon(self._load, shard, batches)
            return
        deleted = [each for each in shard.groups.values() if isinstance(each, ConsumerGroup) and each.dead]
        for group in deleted:
            del shard.groups[group.group_id]
        for group_id in shard.offsets.keys() - shard.groups.keys():
            shard.groups[group_id] = ClassicGroup(group_id, self._clock_ms())
        shard.loading = False
        self._on_loaded(shard)
