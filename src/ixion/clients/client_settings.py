"""Reads the settings that producers and administrators have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.connection import SOFTWARE
from ixion.clients.options import MAX_I32, Options
from ixion.clients.security import read_security


def read_client_settings(options: Options, given: Mapping[str, Any], *, idle_ms: float) -> ClientSettings:
    """`idle_ms` is the default of connections.max.idle.ms."""
    return ClientSettings(
        client_id=options.text("client_id", SOFTWARE),
        request_timeout_s=request_timeout(options),
        connect_timeout_s=options.seconds("socket_connection_setup_timeout_ms", 10_000, least_ms=1),
        reconnect_backoff_s=options.seconds("reconnect_backoff_ms", 50),
        reconnect_backoff_max_s=options.seconds("reconnect_backoff_max_ms", 1000),
        retry_backoff_s=options.seconds("retry_backoff_ms", 100),
        retry_backoff_max_s=options.seconds("retry_backoff_max_ms", 1000),
        metadata_max_age_s=options.seconds("metadata_max_age_ms", 300_000),
        connections_max_idle_s=options.seconds("connections_max_idle_ms", idle_ms),
        security=read_security(given),
    )


def request_timeout(options: Options) -> float:
    return options.seconds("request_timeout_ms", 30_000, least_ms=1, most_ms=MAX_I32)
