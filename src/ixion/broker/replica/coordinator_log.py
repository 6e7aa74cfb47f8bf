"""The internal topic of a coordinator, as an interface; `InternalTopic` implements it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from ixion.language.model.errors import ErrorCode
from ixion.language.records.batch import BatchView

# Called with the code and the offset after the last record written.
Appended = Callable[[ErrorCode, int], None]


class CoordinatorLog(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def partition_count(self) -> int:
        """The configured number even before the topic exists."""

    def partition_for(self, key: str) -> int:
        """The partition that holds the state of a group or of a transactional id."""

    def leader_epoch(self, partition: int) -> int:
        """-1 if another broker leads the partition, or it does not exist yet."""

    def largest_batch(self, partition: int) -> int:
        """max.message.bytes of the partition."""

    def append(self, partition: int, batch: bytes, done: Appended, *, whole: bool = False) -> None:
        """Append one batch as BatchBuilder makes it, with acks=all. `done` is called once, perhaps at once.

        A `whole` batch may be larger than max.message.bytes, because it cannot be divided; it must fit into a segment.
        """

    def read(self, partition: int) -> Iterator[BatchView]:
        """Every batch from the log start to the log end."""

    def end(self, partition: int) -> int:
        """The offset after the last record, replicated or not."""

    def is_replicated(self, partition: int, end: int) -> bool:
        """Whether the records before `end` are on all in-sync replicas."""

    def follower_fetches(self, partition: int) -> dict[int, int] | None:
        """How often each in-sync follower has fetched, by broker. None: another broker leads the partition."""

    async def ensure(self) -> None:
        """Create the topic if it is missing."""
