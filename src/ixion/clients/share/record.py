"""A record that a share consumer returns. It is locked for this consumer until it is acknowledged or the lock ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from ixion.clients.consumer.types import K, V
from ixion.language.records.record import Record

if TYPE_CHECKING:
    from ixion.clients.core.share.acquisition import Acquisition


class ShareRecord(Generic[K, V]):
    """Key, value and headers are decoded from their batch when they are first used. With deserializers, key and value
    are the results of these. `delivery_count` is 1 for the first delivery."""

    __slots__ = ("acquisition", "delivery_count", "made", "partition", "record", "topic")

    def __init__(self, record: Record, delivery_count: int, acquisition: Acquisition) -> None:
        self.topic, self.partition = acquisition.place
        self.record = record
        self.delivery_count = delivery_count
        self.acquisition = acquisition  # by which the consumer knows it again
        self.made: tuple[Any, Any] | None = None  # key and value, by deserializers

    @property
    def offset(self) -> int:
        return self.record.offset

    @property
    def timestamp(self) -> int:
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
        return f"ShareRecord({self.topic}-{self.partition} {self.record!r}, delivery {self.delivery_count})"
