"""The settings of a producer, under Kafka's names with underscores; `docs/clients.md` has the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.core.producer.partitioner import Partitioner
from ixion.records.builder import Headers
from ixion.records.compression import Codec

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
    enable_idempotence: bool = True
    batch_size: int = 16_384
    linger_s: float = 0.005
    buffer_memory: int = 32 * 1024 * 1024
    max_block_s: float = 60.0
    max_request_size: int = 1024 * 1024
    max_in_flight: int = 5  # max.in.flight.requests.per.connection
    retries: int = 2**31 - 1
    delivery_timeout_s: float = 120.0
    compression: Codec = Codec.NONE
    compression_level: int | None = None
    partitioner: Partitioner | None = None
    partitioner_ignore_keys: bool = False
    adaptive_partitioning: bool = True
    availability_timeout_s: float = 0.0  # partitioner.availability.timeout.ms; 0 is off
    transactional_id: str | None = None
    transaction_timeout_s: float = 60.0
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    interceptors: Sequence[Interceptor] = ()
