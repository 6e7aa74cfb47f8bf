"""The settings of a consumer: Kafka's names with underscores, and Kafka's defaults; times in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ixion.clients.assignors import DEFAULTS
from ixion.clients.core.client import ClientSettings
from ixion.clients.core.connection import NEVER
from ixion.clients.core.security import Security


class ConsumerSettings(NamedTuple):
    client_id: str = "ixion"
    client_rack: str = ""
    group_instance_id: str | None = None
    auto_offset_reset: str = "latest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    group_protocol: str = "classic"
    group_remote_assignor: str | None = None  # of the consumer protocol; None: the coordinator's choice
    partition_assignment_strategy: Sequence[str] = DEFAULTS
    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1024 * 1024
    allow_auto_create_topics: bool = True
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    metadata_max_age_ms: int = 300_000
    connections_max_idle_ms: int = 540_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000


def client_settings(settings: ConsumerSettings, security: Security) -> ClientSettings:
    return ClientSettings(
        client_id=settings.client_id,
        request_timeout_s=settings.request_timeout_ms / 1000,
        connect_timeout_s=settings.socket_connection_setup_timeout_ms / 1000,
        reconnect_backoff_s=settings.reconnect_backoff_ms / 1000,
        reconnect_backoff_max_s=settings.reconnect_backoff_max_ms / 1000,
        retry_backoff_s=settings.retry_backoff_ms / 1000,
        retry_backoff_max_s=settings.retry_backoff_max_ms / 1000,
        metadata_max_age_s=settings.metadata_max_age_ms / 1000,
        metadata_max_idle_s=NEVER,
        connections_max_idle_s=settings.connections_max_idle_ms / 1000,
        creates_topics=settings.allow_auto_create_topics,
        security=security,
    )
