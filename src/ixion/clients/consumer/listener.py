"""What a caller can have called when partitions come and go, and when records and commits pass by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.metadata import TopicPartition


class RebalanceListener:
    """What to do when partitions come and go; called within poll. Override what you need, with `async` on asyncio."""

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> object:
        """They are ours, and nothing of them has been read yet: the place to seek."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> object:
        """They are about to be given up: the last chance to commit."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> object:
        """They were taken away; others may read them already, so that a commit would fail."""

    def hear(self, kind: str, partitions: Sequence[TopicPartition]) -> object:
        if kind == "assigned":
            return self.on_assigned(partitions)
        return self.on_revoked(partitions) if kind == "revoked" else self.on_lost(partitions)


class Interceptor(Protocol):
    """Sees records before the caller does, and what was committed. What it raises is logged, and changes nothing."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]: ...

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...
