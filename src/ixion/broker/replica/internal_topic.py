"""An internal topic as its coordinator sees it: append with acks=all, read everything, find the partition of a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.broker.replica.coordinator_log import Appended
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.results import AppendResult
from ixion.language.model.errors import ErrorCode
from ixion.language.model.placement import PartitionOf, partition_of
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_batches

GROUP_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_STATE: Final = "__share_group_state"
INTERNAL: Final = frozenset({GROUP_OFFSETS, TRANSACTION_STATE, SHARE_STATE})

ANY_SIZE: Final = 2**31 - 1  # for a partition that is not here: its append is refused anyway
_CHUNK: Final = 1 << 20  # bytes read at a time


class InternalTopic:
    def __init__(
        self,
        name: str,
        replicas: ReplicaManager,
        *,
        partition_count: Callable[[], int],
        create: Callable[[str], Awaitable[None]],
        partition_of: PartitionOf = partition_of,
        timeout_ms: int = 5_000,
    ) -> None:
        self.name: Final = name
        self._replicas = replicas
        self._partition_count = partition_count
        self._create = create
        self._partition_of = partition_of
        self._timeout_ms = timeout_ms

    @property
    def partition_count(self) -> int:
        return self._partition_count()

    def partition_for(self, key: str) -> int:
        return self._partition_of(key, self.partition_count)

    def leader_epoch(self, partition: int) -> int:
        found = self._replicas.partition(self.name, partition)
        return found.leader_epoch if found is not None and found.leads else -1

    def largest_batch(self, partition: int) -> int:
        found = self._replicas.partition(self.name, partition)
        return ANY_SIZE if found is None else found.log.config.max_message_bytes

    def append(self, partition: int, batch: bytes, done: Appended, *, whole: bool = False) -> None:
        def finish(results: list[AppendResult]) -> None:
            (result,) = results
            done(result.code, result.required if result.code == ErrorCode.NONE else -1)

        origin = Origin.WHOLE_CHANGE if whole else Origin.COORDINATOR
        self._replicas.append(self._timeout_ms, -1, origin, [(self.name, partition, batch)], finish)

    def read(self, partition: int) -> Iterator[BatchView]:
        found = self._replicas.partition(self.name, partition)
        if found is None:
            return
        offset = found.log.log_start
        while True:
            data = read(found.log, offset, _CHUNK, Bound.END)
            if not data.records:
                return
            for batch in iter_batches(data.records):
                yield batch
                offset = int(batch.last_offset) + 1

    def end(self, partition: int) -> int:
        found = self._replicas.partition(self.name, partition)
        return 0 if found is None else found.log.end_offset

    def is_replicated(self, partition: int, end: int) -> bool:
        found = self._replicas.partition(self.name, partition)
        return found is not None and found.log.high_watermark >= end

    def follower_fetches(self, partition: int) -> dict[int, int] | None:
        found = self._replicas.partition(self.name, partition)
        if found is None or not found.leads:
            return None
        return {each.broker_id: each.fetches for each in found.followers.values() if each.broker_id in found.isr}

    def start(self, partition: int) -> int:
        """The first offset of the log."""
        found = self._replicas.partition(self.name, partition)
        return 0 if found is None else found.log.log_start

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records before `offset`; the disk space comes back with whole segments."""
        self._replicas.delete_records(self._timeout_ms, [(self.name, partition, offset)], lambda _: None)

    async def ensure(self) -> None:
        await self._create(self.name)
