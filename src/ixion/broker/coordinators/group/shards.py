"""The partitions of __consumer_offsets that this broker leads, loaded or being loaded.

While a partition is being loaded its groups answer COORDINATOR_LOAD_IN_PROGRESS. If it cannot be loaded they answer
COORDINATOR_NOT_AVAILABLE, on which clients retry. (Kafka answers NOT_COORDINATOR, so that clients look for
another coordinator.)
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import Final

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.replay import replay_control, replay_record
from ixion.broker.coordinators.group.shard import Group, GroupShard
from ixion.broker.coordinators.loader import STEP, Loader
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.language.model.errors import ErrorCode
from ixion.language.records.batch import BatchView
from ixion.language.records.record import Record
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

MOST_GROUPS: Final = 100_000  # on this broker
MOST_NAMES_BYTES: Final = 128 << 20  # of their names, and of what every group takes
GROUP_BYTES: Final = 600
RECOUNT_MS: Final = 10_000
MAX_REMEMBERED: Final = 10_000
LONG: Final = 255  # characters: a longer name is not remembered


class Shards:
    def __init__(
        self,
        log: CoordinatorLog,
        *,
        clock_ms: Callable[[], int],
        timer: Timer,
        on_loaded: Callable[[Group], None],
        on_unloaded: Callable[[Group], None],
    ) -> None:
        """`on_loaded` and `on_unloaded` are called for each group of a partition."""
        self._log = log
        self._clock_ms = clock_ms
        self._on_loaded = on_loaded
        self._on_unloaded = on_unloaded
        self.most_groups = MOST_GROUPS
        self.most_names_bytes = MOST_NAMES_BYTES
        self.names_bytes = 0  # at least what the names take
        self._counted_ms = -RECOUNT_MS
        self._shards: dict[int, GroupShard] = {}
        self._places: dict[str, int] = {}  # by group id: the partition of a group that a request named
        self.loader = Loader(log, timer)

    def __iter__(self) -> Iterator[GroupShard]:
        return iter(list(self._shards.values()))

    @property
    def is_loading(self) -> bool:
        return any(shard.loading and not shard.failed for shard in self._shards.values())

    def partition_for(self, group_id: str) -> int:
        """The result is remembered: hashing a name character by character is slow."""
        known = self._places.get(group_id)
        if known is None:
            if len(self._places) >= MAX_REMEMBERED:
                self._places.clear()
            known = self._log.partition_for(group_id)
            if len(group_id) <= LONG:
                self._places[group_id] = known
        return known

    def at(self, partition: int) -> GroupShard | None:
        return self._shards.get(partition)

    def find(self, group_id: str) -> GroupShard | ErrorCode:
        """The shard of the group, or the error code if it cannot be served here now."""
        shard = self._shards.get(self.partition_for(group_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if not shard.loading:
            return shard
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if shard.failed else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def find_for(self, group_id: str) -> GroupShard | ErrorCode:
        """As `find`, for a request that may create the group. At `most_groups` it gets COORDINATOR_NOT_AVAILABLE and
        retries; groups without members expire with their offsets."""
        shard = self.find(group_id)
        if isinstance(shard, ErrorCode) or group_id in shard.groups:
            return shard
        count = 0
        for each in self._shards.values():
            count += len(each.groups)
        if count < self.most_groups and self._has_room_for(group_id):
            return shard
        return ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _has_room_for(self, group_id: str) -> bool:
        """Whether the names of all groups stay within their budget. New names are counted as they come; those of
        deleted groups, only when the budget is used up."""
        size = GROUP_BYTES + getsizeof(group_id)
        now_ms = self._clock_ms()
        if self.names_bytes + size > self.most_names_bytes and abs(now_ms - self._counted_ms) >= RECOUNT_MS:
            self._counted_ms = now_ms
            self.names_bytes = 0
            for shard in self._shards.values():
                for name in shard.groups:
                    self.names_bytes += GROUP_BYTES + getsizeof(name)
        if self.names_bytes + size > self.most_names_bytes:
            return False
        self.names_bytes += size
        return True

    def elect(self, partition: int, leader_epoch: int) -> None:
        """Load a partition that this broker now leads. A leader epoch that is not newer is ignored."""
        self._places.clear()  # the topic may be new, with another number of partitions
        known = self._shards.get(partition)
        if known is not None:
            if leader_epoch <= known.leader_epoch:
                return
            self.resign(partition)
        shard = self._shards[partition] = GroupShard(partition, leader_epoch)
        self.loader.load(ShardLoad(self, shard))

    def resign(self, partition: int) -> None:
        shard = self._shards.pop(partition, None)
        if shard is not None:
            self.loader.forget(partition)
            self.unload(shard)

    def reload(self, shard: GroupShard) -> None:
        """Memory and log differ: load the partition again."""
        if self._shards.get(shard.partition) is shard:
            self.resign(shard.partition)
            self.elect(shard.partition, shard.leader_epoch)

    def holds(self, shard: GroupShard) -> bool:
        return self._shards.get(shard.partition) is shard

    def serve(self, shard: GroupShard) -> Steps[None]:
        """All records have been replayed: begin to serve the groups of the partition."""
        deleted = [each for each in shard.groups.values() if not isinstance(each, ClassicGroup) and each.dead]
        for dead in deleted:
            del shard.groups[dead.group_id]
        for group_id in shard.offsets.keys() - shard.groups.keys():
            shard.groups[group_id] = ClassicGroup(group_id, self._clock_ms())
            if len(shard.groups) % STEP == 0:
                yield
        for group in list(shard.groups.values()):
            self.names_bytes += GROUP_BYTES + getsizeof(group.group_id)
            try:
                self._on_loaded(group)
                shard.resumed.append(group)
            except Exception as error:
                del shard.groups[group.group_id]
                self.loader.skip(shard.partition, f"group {group.group_id!r}", error)
            if len(shard.resumed) % STEP == 0:
                yield
        shard.resumed.clear()
        shard.loading = False

    def unload(self, shard: GroupShard) -> None:
        for group in shard.resumed if shard.loading else shard.groups.values():
            self._on_unloaded(group)
        shard.resumed.clear()


class ShardLoad:
    """What the loader needs of a shard."""

    def __init__(self, shards: Shards, shard: GroupShard) -> None:
        self._shards = shards
        self._shard = shard

    @property
    def partition(self) -> int:
        return self._shard.partition

    def is_wanted(self) -> bool:
        return self._shards.holds(self._shard)

    def begin(self) -> None:
        self._shard.clear()

    def control(self, batch: BatchView) -> None:
        replay_control(self._shard, batch)

    def replay(self, batch: BatchView, record: Record) -> None:
        replay_record(self._shard, batch, record)

    def finish(self) -> Steps[None]:
        return self._shards.serve(self._shard)

    def fail(self) -> None:
        self._shards.unload(self._shard)
        self._shard.failed = True
