"""The network's limits from the broker's settings, at the start and after each change."""

from __future__ import annotations

from collections.abc import Mapping

from ixion.broker.network import NetworkLimits, SocketServer
from ixion.config import network_settings as settings
from ixion.config.broker import BrokerConfig
from ixion.config.dynamic import DynamicConfig
from ixion.config.rules import connection_overrides


def limits_of(config: BrokerConfig) -> NetworkLimits:
    return NetworkLimits(
        max_connections=config[settings.MAX_CONNECTIONS],
        max_connections_per_listener=config.max_connections_of,
        max_connections_per_ip=config[settings.MAX_CONNECTIONS_PER_IP],
        max_connections_per_ip_overrides=by_address(connection_overrides(config)),
        max_connection_creation_rate=config[settings.MAX_CONNECTION_CREATION_RATE],
        max_idle_ms=config[settings.CONNECTIONS_MAX_IDLE_MS],
        request_max_bytes=config[settings.SOCKET_REQUEST_MAX_BYTES],
        queued_max_requests=config[settings.QUEUED_MAX_REQUESTS],
        queued_max_request_bytes=config[settings.QUEUED_MAX_REQUEST_BYTES],
    )


def by_address(overrides: Mapping[str, int]) -> dict[str, int]:
    """Limits of hosts as limits of their addresses. Names are looked up once, here."""
    import socket

    found: dict[str, int] = {}
    for host, count in overrides.items():
        try:
            addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        except OSError:
            addresses = {host}
        found |= dict.fromkeys(addresses, count)
    return found


def follow_limits(config: DynamicConfig, server: SocketServer) -> None:
    def changed(before: BrokerConfig, after: BrokerConfig) -> None:
        if after[settings.NUM_IO_THREADS] != before[settings.NUM_IO_THREADS]:
            server.change_handlers(after[settings.NUM_IO_THREADS])
        now = limits_of(after)
        if now != server.limits:
            server.set_limits(now)

    config.listen(changed)
