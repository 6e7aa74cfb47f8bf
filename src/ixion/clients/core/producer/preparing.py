"""Runs interceptors, then serializers, before a record is appended."""

from __future__ import annotations

from typing import Any

from ixion.clients.core.producer.batch import Delivery, OnDelivery
from ixion.clients.core.producer.settings import OutgoingRecord, ProducerSettings
from ixion.clients.log import log_interceptor
from ixion.language.records.builder import Headers


class Preparing:
    def __init__(self, settings: ProducerSettings) -> None:
        self._interceptors = settings.interceptors
        self._key_serializer = settings.key_serializer
        self._value_serializer = settings.value_serializer

    @staticmethod
    def is_needed(settings: ProducerSettings) -> bool:
        return bool(settings.interceptors or settings.key_serializer or settings.value_serializer)

    def prepare(
        self, topic: str, value: Any, key: Any, headers: Headers, timestamp_ms: int | None, partition: int | None
    ) -> OutgoingRecord:
        """Every interceptor gets the result of the one before it. An interceptor that raises is logged and skipped."""
        record = OutgoingRecord(topic, value, key, headers, timestamp_ms, partition)
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)  # step 2
            except Exception:
                log_interceptor("on_send")
        if self._key_serializer is not None and record.key is not None:
            record = record._replace(key=self._key_serializer(record.key))
        if self._value_serializer is not None and record.value is not None:
            record = record._replace(value=self._value_serializer(record.value))  # step 4
        return record._replace(headers=tuple(record.headers))  # step 6

    def wish(self, wish: OnDelivery | None) -> OnDelivery | None:
        """The callback of a record, with those of the interceptors before it."""
        return Intercepted(self._interceptors, wish) if self._interceptors else wish


class Intercepted:
    __slots__ = ("_interceptors", "_wish")

    def __init__(self, interceptors: Any, wish: OnDelivery | None) -> None:
        self._interceptors = interceptors
        self._wish = wish

    def __call__(self, delivery: Delivery) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_delivery(delivery)
            except Exception:
                log_interceptor("on_delivery")
        if self._wish is not None:
            self._wish(delivery)


def without_code(settings: ProducerSettings) -> ProducerSettings:
    """Settings for the machine, without functions of the caller: the engine holds the machine, and a serializer that
    refers to the producer would keep it alive."""
    return settings._replace(key_serializer=None, value_serializer=None, interceptors=())


def as_bytes(name: str, data: object) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"the {name} is a {type(data).__name__}; give bytes, or set {name}_serializer")
