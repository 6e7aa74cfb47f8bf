"""Callbacks of a consumer: rebalance listeners, and interceptors of records and commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.metadata import TopicPartition


class RebalanceListener:
    """Called within poll when partitions are assigned or revoked. Override what you need, with `async` on asyncio."""

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> object:
        """These partitions are assigned, and nothing of them has been read yet. Seek here."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> object:
        """These partitions are about to be revoked: the last chance to commit."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> object:
        """These partitions were lost; others may read them already, so a commit would fail."""

    def hear(self, kind: str, partitions: Sequence[TopicPartition]) -> object:
        if kind == "assigned":
            return self.on_assigned(partitions)
        return self.on_revoked(partitions) if kind == "revoked" else self.on_lost(partitions)


class Interceptor(Protocol):
    """Sees records before the caller does, and committed offsets. Its errors are logged and ignored."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]: ...

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...
