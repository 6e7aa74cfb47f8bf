"""Reads the settings that producers and administrators have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixion.clients.core.client import ClientSettings
from ixion.clients.options import Options
from ixion.clients.security import read_security
from ixion.clients.table import default, number


def read_client_settings(options: Options, given: Mapping[str, Any], *, idle_ms: float) -> ClientSettings:
    """`idle_ms` is the default of connections.max.idle.ms."""
    idle, _, least_ms, most_ms = number("connections_max_idle_ms")
    return ClientSettings(
        client_id=options.text("client_id", default("client_id")),
        request_timeout_s=request_timeout(options),
        connect_timeout_s=options.seconds(*number("socket_connection_setup_timeout_ms")),
        reconnect_backoff_s=options.seconds(*number("reconnect_backoff_ms")),
        reconnect_backoff_max_s=options.seconds(*number("reconnect_backoff_max_ms")),
        retry_backoff_s=options.seconds(*number("retry_backoff_ms")),
        retry_backoff_max_s=options.seconds(*number("retry_backoff_max_ms")),
        metadata_max_age_s=options.seconds(*number("metadata_max_age_ms")),
        connections_max_idle_s=options.seconds(idle, idle_ms, least_ms, most_ms),
        security=read_security(given),
    )


def request_timeout(options: Options) -> float:
    return options.seconds(*number("request_timeout_ms"))
