"""The settings of a consumer: Kafka's names with underscores. `ixion.clients.table` has the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.connection import NEVER
from ixion.clients.core.security import Security
from ixion.clients.table import default


class ConsumerSettings(NamedTuple):
    client_id: str = default("client_id")
    client_rack: str = default("client_rack")
    group_instance_id: str | None = default("group_instance_id")
    auto_offset_reset: str = default("auto_offset_reset")
    enable_auto_commit: bool = default("enable_auto_commit")
    auto_commit_interval_ms: int = default("auto_commit_interval_ms")
    max_poll_records: int = default("max_poll_records")
    max_poll_interval_ms: int = default("max_poll_interval_ms")
    session_timeout_ms: int = default("session_timeout_ms")
    heartbeat_interval_ms: int = default("heartbeat_interval_ms")
    group_protocol: str = default("group_protocol")
    group_remote_assignor: str | None = default("group_remote_assignor")  # None: the coordinator's choice
    partition_assignment_strategy: Sequence[str] = default("partition_assignment_strategy")
    isolation_level: str = default("isolation_level")
    fetch_min_bytes: int = default("fetch_min_bytes")
    fetch_max_bytes: int = default("fetch_max_bytes")
    fetch_max_wait_ms: int = default("fetch_max_wait_ms")
    max_partition_fetch_bytes: int = default("max_partition_fetch_bytes")
    allow_auto_create_topics: bool = default("allow_auto_create_topics")
    request_timeout_ms: int = default("request_timeout_ms")
    default_api_timeout_ms: int = default("default_api_timeout_ms")
    metadata_max_age_ms: int = default("metadata_max_age_ms")
    connections_max_idle_ms: int = default("connections_max_idle_ms")
    reconnect_backoff_ms: int = default("reconnect_backoff_ms")
    reconnect_backoff_max_ms: int = default("reconnect_backoff_max_ms")
    retry_backoff_ms: int = default("retry_backoff_ms")
    retry_backoff_max_ms: int = default("retry_backoff_max_ms")
    socket_connection_setup_timeout_ms: int = default("socket_connection_setup_timeout_ms")


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
