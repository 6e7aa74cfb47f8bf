"""What an administrator can be told, under Kafka's names with underscores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.connection import SOFTWARE
from ixion.clients.options import MAX_I32, Options
from ixion.clients.security import SecurityOptions, read_security


class AdminOptions(SecurityOptions, total=False):
    """Times in milliseconds."""

    client_id: str
    connections_max_idle_ms: float
    default_api_timeout_ms: float
    metadata_max_age_ms: float
    reconnect_backoff_max_ms: float
    reconnect_backoff_ms: float
    request_timeout_ms: float
    retry_backoff_max_ms: float
    retry_backoff_ms: float
    socket_connection_setup_timeout_ms: float


KNOWN: Final = tuple(AdminOptions.__annotations__)


class AdminSettings(NamedTuple):
    client: ClientSettings
    timeout_s: float  # default.api.timeout.ms


def read_admin_settings(given: Mapping[str, Any]) -> AdminSettings:
    """TypeError for a name that there is not, ValueError for a value that is not allowed; both name it."""
    options = Options(given, KNOWN)
    client = ClientSettings(
        client_id=options.text("client_id", SOFTWARE),
        request_timeout_s=options.seconds("request_timeout_ms", 30_000, least_ms=1, most_ms=MAX_I32),
        connect_timeout_s=options.seconds("socket_connection_setup_timeout_ms", 10_000, least_ms=1),
        reconnect_backoff_s=options.seconds("reconnect_backoff_ms", 50),
        reconnect_backoff_max_s=options.seconds("reconnect_backoff_max_ms", 1000),
        retry_backoff_s=options.seconds("retry_backoff_ms", 100),
        retry_backoff_max_s=options.seconds("retry_backoff_max_ms", 1000),
        metadata_max_age_s=options.seconds("metadata_max_age_ms", 300_000),
        connections_max_idle_s=options.seconds("connections_max_idle_ms", 300_000),
        creates_topics=False,
        security=read_security(given),
    )
    return AdminSettings(client, options.seconds("default_api_timeout_ms", 60_000, least_ms=1, most_ms=MAX_I32))
