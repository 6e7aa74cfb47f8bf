"""An internal topic as its coordinator sees it: append with acks=all, read everything, find the partition of a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Final

from ixion.log.prepare import Origin
from ixion.log.reader import Isolation, read
from ixion.model.errors import ErrorCode
from ixion.records.batch import BatchView
from ixion.records.batches import iter_batches
from ixion.replica.coordinator_log import Appended
from ixion.replica.manager import ReplicaManager
from ixion.replica.results import AppendResult

GROUP_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
INTERNAL: Final = frozenset({GROUP_OFFSETS, TRANSACTION_STATE})

ANY_SIZE: Final = 2**31 - 1  # for a partition that is not here: its append is refused anyway
_CHUNK: Final = 1 << 20  # bytes read at a time
_LONG_NAME: Final = 256  # characters


class InternalTopic:
    def __init__(
        self,
        name: str,
        replicas: ReplicaManager,
        *,
        partition_count: Callable[[], int],
        create: Callable[[str], Awaitable[None]],
        timeout_ms: int = 5_000,
    ) -> None:
        self.name: Final = name
        self._replicas = replicas
        self._partition_count = partition_count
        self._create = create
        self._timeout_ms = timeout_ms

    @property
    def partition_count(self) -> int:
        return self._partition_count()

    def partition_for(self, key: str) -> int:
        return (java_hash(key) & 0x7FFFFFFF) % self.partition_count

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
            data = read(found.log, offset, _CHUNK, Isolation.LOG_END)
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

    async def ensure(self) -> None:
        await self._create(self.name)


def java_hash(text: str) -> int:
    """Java's String.hashCode, by which Kafka places groups: over UTF-16 units, 32 bits with sign.

    It is computed character by character, and the same few names come all the time, so results are cached. Long names
    are not, because many of them would fill the memory.
    """
    return _remembered_hash(text) if len(text) <= _LONG_NAME else _java_hash(text)


def _java_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (value * 31 + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


_remembered_hash: Final = lru_cache(maxsize=10_000)(_java_hash)
