"""A record that a consumer returns: the record of the batch, with its topic and partition."""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, final

from ixion._native import i64
from ixion.clients.consumer.types import K, V
from ixion.language.records.record import Record


@final
class ConsumerRecord(Generic[K, V]):
    """Key, value and headers are decoded from their batch when they are first used; keep them, not the record. With
    deserializers, key and value are the results of these."""

    def __init__(self, topic: str, partition: i64, record: Record) -> None:
        self.topic = topic
        self.partition: i64 = partition
        self.record = record
        self.made: tuple[Any, Any] | None = None  # key and value, by deserializers

    @property
    def offset(self) -> i64:
        return self.record.offset

    @property
    def timestamp(self) -> i64:
        """Milliseconds since 1970; -1 for none."""
        return self.record.timestamp

    @property
    def key(self) -> K:
        """Bytes or None, without a deserializer."""
        made = self.made
        key: Any = self.record.key if made is None else made[0]
        return key  # type: ignore[no-any-return]

    @property
    def value(self) -> V:
        made = self.made
        value: Any = self.record.value if made is None else made[1]
        return value  # type: ignore[no-any-return]

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        return self.record.headers

    def __repr__(self) -> str:
        return f"ConsumerRecord({self.topic}-{self.partition} {self.record!r})"


def take(records: Iterator[Record], most: i64, topic: str, partition: i64, found: list[ConsumerRecord]) -> bool:
    """Append up to `most` of the records to `found`. True if there may be more."""
    if most <= 0:
        return True
    for record in records:
        found.append(ConsumerRecord(topic, partition, record))
        most -= 1
        if most == 0:
            return True
    return False
