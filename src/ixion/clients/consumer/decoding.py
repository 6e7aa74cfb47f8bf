"""Deserializers and interceptors, which see records before a caller gets them.

A value that cannot be deserialized raises when it is reached, after all earlier records have been returned, and at
every poll until the caller seeks past it: the position stays at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ixion.clients.consumer.listener import Interceptor
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.log import log_interceptor
from ixion.clients.metadata import TopicPartition
from ixion.language.records.record import Record

Deserializer = Callable[[bytes], Any]


class DeserializationError(ValueError):
    """A deserializer raised. Seek to `offset + 1` of `partition` to leave the record out."""

    def __init__(self, partition: TopicPartition, offset: int, part: str) -> None:
        super().__init__(f"the {part} of the record at offset {offset} of {partition} cannot be deserialized")
        self.partition: Final = partition
        self.offset: Final = offset


class Decoding:
    def __init__(
        self,
        seek: Callable[[TopicPartition, int], None],
        interceptors: Sequence[Interceptor],
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
    ) -> None:
        check_deserializers(key_deserializer, value_deserializer)
        self.interceptors = tuple(interceptors)
        self.is_needed = bool(self.interceptors or key_deserializer or value_deserializer)
        self._seek = seek
        self._key = key_deserializer
        self._value = value_deserializer

    def apply(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """The deserialized records. If one fails, it and the later ones are put back, unless it is the first."""
        if not records or not self.is_needed:
            return records
        if self._key is not None or self._value is not None:
            for at, record in enumerate(records):
                try:
                    place = TopicPartition(record.topic, record.partition)
                    record.made = deserialized(place, record.record, self._key, self._value)
                except DeserializationError:
                    self._give_back(records[at:])
                    if at == 0:
                        raise
                    records = records[:at]
                    break
        for interceptor in self.interceptors:
            try:
                records = interceptor.on_consume(records)
            except Exception:
                log_interceptor("on_consume")
        return records

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Call the interceptors."""
        for interceptor in self.interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                log_interceptor("on_commit")

    def _give_back(self, records: list[ConsumerRecord]) -> None:
        first: dict[TopicPartition, int] = {}
        for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        for place, offset in first.items():
            self._seek(place, offset)


def check_deserializers(key: Deserializer | None, value: Deserializer | None) -> None:
    """TypeError for one that is no function."""
    for name, given in (("key_deserializer", key), ("value_deserializer", value)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be a function of bytes, not {given!r}")


def deserialized(
    place: TopicPartition, record: Record, of_key: Deserializer | None, of_value: Deserializer | None
) -> tuple[Any, Any]:
    """Key and value; nulls stay None. DeserializationError if a deserializer raises."""
    key: Any = record.key
    value: Any = record.value
    part = "key"
    try:
        if of_key is not None and key is not None:
            key = of_key(key)
        part = "value"
        if of_value is not None and value is not None:
            value = of_value(value)
    except Exception as error:
        raise DeserializationError(place, record.offset, part) from error
    return key, value
