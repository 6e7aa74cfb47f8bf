"""All limits of the network in one value, each with its name in Kafka. Replaced as a whole at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

NO_LIMIT: Final = 2**31 - 1
MIB: Final = 1024 * 1024
REFUSED: Final = "authentication"  # why a connection is closed
# Wait between the response to a refused login and the close: a client that sees both at once (kafka-python) reports a
# lost connection and not the reason.
LAST_WORD_MS: Final = 100


class NetworkLimits(NamedTuple):
    max_connections: int = 16_384  # max.connections; above it accepting waits
    max_connections_per_listener: Mapping[str, int] = {}  # listener.name.NAME.max.connections
    max_connections_per_ip: int = NO_LIMIT  # max.connections.per.ip; above it a new connection is closed
    max_connections_per_ip_overrides: Mapping[str, int] = {}  # by address, as the socket gives it
    max_connection_creation_rate: int = NO_LIMIT  # max.connection.creation.rate; above it accepting waits
    max_idle_ms: int = 600_000  # connections.max.idle.ms; negative: never
    request_max_bytes: int = 100 * MIB  # socket.request.max.bytes
    queued_max_requests: int = 500  # queued.max.requests
    queued_max_request_bytes: int = 256 * MIB  # queued.max.request.bytes; negative: no pool
    # The rest has no name in Kafka, which lets a stalled peer hold its memory indefinitely; we close it. A request must
    # arrive, and a response must leave, within `stall_ms` plus the time that its bytes take at the slowest rate
    # allowed.
    stall_ms: int = 30_000
    slowest_bytes_per_second: int = 64 * 1024
    half_closed_ms: int = 5_000  # how long an operation may wait after its client has closed its sending half
    unsent_max_bytes: int = 256 * MIB  # unsent responses of all connections; above it the slowest readers are closed
    busy_poll_us: int = 100  # how long we poll for the next request after a small response; 0: not at all

    def patience_ms(self, size: int) -> int:
        """How long `size` bytes may take to arrive or to leave. 1 MiB at the defaults: 46 s."""
        return self.stall_ms + size * 1000 // self.slowest_bytes_per_second

    def of_listener(self, name: str) -> int:
        return self.max_connections_per_listener.get(name, NO_LIMIT)

    def of_address(self, address: str) -> int:
        return self.max_connections_per_ip_overrides.get(address, self.max_connections_per_ip)


def joined(address: object) -> str:
    """An address as the socket gives it, `("127.0.0.1", 9092)` or longer, as text."""
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) and len(address) > 1 else str(address)
