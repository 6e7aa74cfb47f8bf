"""Where a broker listens: `host:port`, `[::1]:9092`, or a host alone, which means Kafka's port 9092."""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """ValueError, with the expected form, if it is not an address."""
    host, port = text.strip(), str(DEFAULT_PORT)
    if host.startswith("["):
        host, closing, rest = host[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not an address: write IPv6 as [::1]:9092")
        port = rest[1:] or port
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not an address: write host:port, for example 127.0.0.1:9092")
    return Address(host, int(port))


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """Addresses separated by commas; any of them leads to the whole cluster."""
    if not isinstance(text, str):
        raise TypeError(f"bootstrap must be text, addresses separated by commas ('one:9092,two:9092'), not {text!r}")
    return tuple(parse_address(part) for part in text.split(",") if part.strip()) or (parse_address(text),)
