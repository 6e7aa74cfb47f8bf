"""The settings of all clients: default, range and unit of each, once.

`ProducerOptions`, `ConsumerOptions`, `ShareConsumerOptions` and `AdminOptions` name those that a client takes, with
their types. The settings of security are apart (`security`): they have no ranges.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ixion.clients.core.checks import MAX_I32, MAX_I64
from ixion.clients.core.connection import SOFTWARE


class Setting(NamedTuple):
    """Kafka's default, and for numbers the unit and the range; `most` tells Kafka's int from its long."""

    default: Any
    unit: str = ""
    least: int = 0
    most: int = MAX_I32


def ms(default: int, least: int = 0, most: int = MAX_I32) -> Setting:
    return Setting(default, "ms", least, most)


def size(default: int, least: int = 0) -> Setting:
    return Setting(default, "bytes", least)


def count(default: int, least: int = 1) -> Setting:
    return Setting(default, "", least)


SETTINGS: Final[dict[str, Setting]] = {
    "acks": Setting("all"),
    "allow_auto_create_topics": Setting(True),
    "auto_commit_interval_ms": ms(5_000),
    "auto_offset_reset": Setting("latest"),
    "auto_renew": Setting(True),  # ours
    "batch_size": size(16_384),
    "buffer_memory": size(32 * 1024 * 1024, 1),
    "client_id": Setting(SOFTWARE),
    "client_rack": Setting(""),
    "compression": Setting("none"),
    "compression_level": Setting(None),
    "connections_max_idle_ms": ms(540_000, 1, MAX_I64),  # of an administrator 300,000
    "default_api_timeout_ms": ms(60_000, 1),
    "delivery_timeout_ms": ms(120_000, 0, MAX_I64),
    "enable_auto_commit": Setting(True),
    "enable_idempotence": Setting(True),
    "fetch_max_bytes": size(50 * 1024 * 1024, 1),
    "fetch_max_wait_ms": ms(500),
    "fetch_min_bytes": size(1),
    "group_instance_id": Setting(None),
    "group_protocol": Setting("classic"),
    "group_remote_assignor": Setting(None),
    "heartbeat_interval_ms": ms(3_000, 1),
    "interceptors": Setting(None),
    "isolation_level": Setting("read_uncommitted"),
    "key_serializer": Setting(None),
    "linger_ms": ms(5, 0, MAX_I64),
    "max_block_ms": ms(60_000, 0, MAX_I64),
    "max_in_flight_requests_per_connection": count(5),
    "max_partition_fetch_bytes": size(1024 * 1024),
    "max_poll_interval_ms": ms(300_000, 1),
    "max_poll_records": count(500),
    "max_request_size": size(1024 * 1024, 1),
    "metadata_max_age_ms": ms(300_000, 0, MAX_I64),
    "metadata_max_idle_ms": ms(300_000, 5_000, MAX_I64),
    "partition_assignment_strategy": Setting(("range", "cooperative-sticky")),
    "partitioner": Setting(None),
    "partitioner_adaptive_partitioning_enable": Setting(True),
    "partitioner_availability_timeout_ms": ms(0, 0, MAX_I64),
    "partitioner_ignore_keys": Setting(False),
    "reconnect_backoff_max_ms": ms(1_000, 0, MAX_I64),
    "reconnect_backoff_ms": ms(50, 0, MAX_I64),
    "request_timeout_ms": ms(30_000, 1),
    "retries": count(MAX_I32, 0),
    "retry_backoff_max_ms": ms(1_000, 0, MAX_I64),
    "retry_backoff_ms": ms(100, 0, MAX_I64),
    "session_timeout_ms": ms(45_000, 1),
    "share_acknowledgement_mode": Setting("implicit"),
    "share_acquire_mode": Setting("batch_optimized"),
    "socket_connection_setup_timeout_ms": ms(10_000, 1, MAX_I64),
    "transaction_timeout_ms": ms(60_000, 1),
    "transactional_id": Setting(None),
    "value_serializer": Setting(None),
}


def default(name: str) -> Any:
    return SETTINGS[name].default


def number(name: str) -> tuple[str, Any, int, int]:
    """Name, default, least and most: what `Options` reads a number with."""
    row = SETTINGS[name]
    return name, row.default, row.least, row.most
