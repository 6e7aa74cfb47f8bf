"""The settings of an administrator, under Kafka's names with underscores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ixion.clients.client_settings import read_client_settings
from ixion.clients.core.client import ClientSettings
from ixion.clients.options import Options
from ixion.clients.security import SecurityOptions
from ixion.clients.table import number


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
    """TypeError for an unknown setting, ValueError for a value that is not allowed; both name the setting."""
    options = Options(given, KNOWN)
    client = read_client_settings(options, given, idle_ms=300_000)._replace(creates_topics=False)
    return AdminSettings(client, options.seconds(*number("default_api_timeout_ms")))
