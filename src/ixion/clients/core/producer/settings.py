"""The settings of a producer, under Kafka's names with underscores; `docs/clients.md` has the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.core.producer.partitioner import Partitioner
from ixion.clients.table import default
from ixion.language.records.builder import Headers
from ixion.language.records.compression import Codec

Serializer = Callable[[Any], bytes | None]


class OutgoingRecord(NamedTuple):
    """A record as an interceptor sees it, before it is serialized."""

    topic: str
    value: Any
    key: Any
    headers: Headers
    timestamp_ms: int | None
    partition: int | None


class Interceptor(Protocol):
    """Sees every record before it is sent, and every delivery. Its errors are logged and ignored."""

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord: ...

    def on_delivery(self, delivery: Delivery) -> None: ...


class ProducerSettings(NamedTuple):
    client: ClientSettings = ClientSettings()
    acks: int = -1  # -1 is "all"
    enable_idempotence: bool = default("enable_idempotence")
    batch_size: int = default("batch_size")
    linger_s: float = default("linger_ms") / 1000
    buffer_memory: int = default("buffer_memory")
    max_block_s: float = default("max_block_ms") / 1000
    max_request_size: int = default("max_request_size")
    max_in_flight: int = default("max_in_flight_requests_per_connection")
    retries: int = default("retries")
    delivery_timeout_s: float = default("delivery_timeout_ms") / 1000
    compression: Codec = Codec.NONE
    compression_level: int | None = None
    partitioner: Partitioner | None = None
    partitioner_ignore_keys: bool = default("partitioner_ignore_keys")
    adaptive_partitioning: bool = default("partitioner_adaptive_partitioning_enable")
    availability_timeout_s: float = default("partitioner_availability_timeout_ms") / 1000  # 0 is off
    transactional_id: str | None = None
    transaction_timeout_s: float = default("transaction_timeout_ms") / 1000
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    interceptors: Sequence[Interceptor] = ()
