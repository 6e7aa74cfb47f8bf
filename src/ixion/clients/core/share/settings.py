"""The settings of a share consumer: Kafka's names with underscores. `ixion.clients.table` has the defaults.

What is decided by the group and not by its members is set for the group: `share.auto.offset.reset`,
`share.isolation.level`, `share.record.lock.duration.ms` and others (`ixion config alter group …`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.connection import NEVER
from ixion.clients.core.security import Security
from ixion.clients.table import default

IMPLICIT: Final = "implicit"
EXPLICIT: Final = "explicit"
BATCH_OPTIMIZED: Final = "batch_optimized"
RECORD_LIMIT: Final = "record_limit"


class ShareSettings(NamedTuple):
    client_id: str = default("client_id")
    client_rack: str = default("client_rack")
    share_acknowledgement_mode: str = default("share_acknowledgement_mode")
    share_acquire_mode: str = default("share_acquire_mode")
    auto_renew: bool = default("auto_renew")
    max_poll_records: int = default("max_poll_records")
    max_poll_interval_ms: int = default("max_poll_interval_ms")
    fetch_min_bytes: int = default("fetch_min_bytes")
    fetch_max_bytes: int = default("fetch_max_bytes")
    fetch_max_wait_ms: int = default("fetch_max_wait_ms")
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


def client_settings(settings: ShareSettings, security: Security) -> ClientSettings:
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
