"""Reads what a caller gives a client: settings under Kafka's names with underscores, checked and named if wrong.

Producer("127.0.0.1:9092", linger_sm=5)     TypeError: unknown setting 'linger_sm'; did you mean 'linger_ms'?
Producer("127.0.0.1:9092", linger_ms=-1)    ValueError: linger_ms is -1; allowed are numbers from 0 on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ixion.clients.client_settings import read_client_settings, request_timeout
from ixion.clients.core.producer.partitioner import Partitioner
from ixion.clients.core.producer.settings import Interceptor, ProducerSettings, Serializer
from ixion.clients.log import log_raised_timeout
from ixion.clients.options import MAX_I32, Options
from ixion.clients.security import SecurityOptions
from ixion.clients.table import default, number
from ixion.language.records.compression import Codec


class ProducerOptions(SecurityOptions, total=False):
    """Kafka's names, with underscores; times in milliseconds, sizes in bytes."""

    acks: str | int
    allow_auto_create_topics: bool
    batch_size: int
    buffer_memory: int
    client_id: str
    compression: str
    compression_level: int | None
    connections_max_idle_ms: float
    delivery_timeout_ms: float
    enable_idempotence: bool
    interceptors: Sequence[Interceptor]
    key_serializer: Serializer | None
    linger_ms: float
    max_block_ms: float
    max_in_flight_requests_per_connection: int
    max_request_size: int
    metadata_max_age_ms: float
    metadata_max_idle_ms: float
    partitioner: Partitioner | None
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: float
    partitioner_ignore_keys: bool
    reconnect_backoff_max_ms: float
    reconnect_backoff_ms: float
    request_timeout_ms: float
    retries: int
    retry_backoff_max_ms: float
    retry_backoff_ms: float
    socket_connection_setup_timeout_ms: float
    transaction_timeout_ms: float
    transactional_id: str | None
    value_serializer: Serializer | None


ADAPTIVE: Final = "partitioner_adaptive_partitioning_enable"
ACKS: Final[dict[object, int]] = {"all": -1, "-1": -1, -1: -1, "1": 1, 1: 1, "0": 0, 0: 0}


def read_producer_settings(given: Mapping[str, Any]) -> ProducerSettings:
    """TypeError for an unknown setting, ValueError for a value that is not allowed; both name the setting."""
    options = Options(given, ProducerOptions.__annotations__.keys())
    acks = options.choice("acks", default("acks"), ACKS)
    max_in_flight = options.whole(*number("max_in_flight_requests_per_connection"))
    retries = options.whole(*number("retries"))
    is_possible = acks == -1 and max_in_flight <= 5 and retries > 0
    idempotent = options.flag("enable_idempotence", is_possible)
    if idempotent and not is_possible:
        text = "enable_idempotence needs acks='all', retries and max_in_flight_requests_per_connection of at most 5"
        raise ValueError(text)
    transactional_id = options.text_or_none("transactional_id")
    if transactional_id is not None and not idempotent:
        raise ValueError(
            "transactional_id needs enable_idempotence, acks='all', retries and at most 5 requests in flight"
        )
    linger_s = options.seconds(*number("linger_ms"))
    request_timeout_s = request_timeout(options)
    delivery_timeout_s = options.seconds(*number("delivery_timeout_ms"))
    least_ms = min(round((linger_s + request_timeout_s) * 1000, 3), MAX_I32)
    if delivery_timeout_s < least_ms / 1000:
        if "delivery_timeout_ms" in given:
            text = "should be equal to or larger than linger_ms + request_timeout_ms"
            raise ValueError(f"delivery_timeout_ms is {given['delivery_timeout_ms']!r}; it {text} ({least_ms:.9g})")
        delivery_timeout_s = least_ms / 1000
        log_raised_timeout(least_ms)
    client = read_client_settings(options, given, idle_ms=default("connections_max_idle_ms"))._replace(
        metadata_max_idle_s=options.seconds(*number("metadata_max_idle_ms")),
        creates_topics=options.flag("allow_auto_create_topics", default("allow_auto_create_topics")),
    )
    codecs: dict[object, Codec] = {codec.name.lower(): codec for codec in Codec}
    return ProducerSettings(
        client=client,
        acks=acks,
        enable_idempotence=idempotent,
        batch_size=options.whole(*number("batch_size")),
        linger_s=linger_s,
        buffer_memory=options.whole(*number("buffer_memory")),
        max_block_s=options.seconds(*number("max_block_ms")),
        max_request_size=options.whole(*number("max_request_size")),
        max_in_flight=max_in_flight,
        retries=retries,
        delivery_timeout_s=delivery_timeout_s,
        compression=options.choice("compression", default("compression"), codecs),
        compression_level=options.level("compression_level"),
        partitioner=options.function("partitioner"),
        partitioner_ignore_keys=options.flag("partitioner_ignore_keys", default("partitioner_ignore_keys")),
        adaptive_partitioning=options.flag(ADAPTIVE, default(ADAPTIVE)),
        availability_timeout_s=options.seconds(*number("partitioner_availability_timeout_ms")),
        transactional_id=transactional_id,
        transaction_timeout_s=options.seconds(*number("transaction_timeout_ms")),
        key_serializer=options.function("key_serializer"),
        value_serializer=options.function("value_serializer"),
        interceptors=tuple(given.get("interceptors") or ()),
    )
