"""Where a broker listens: `host:port`, `[::1]:9092`, or a host alone, which means Kafka's port 9092."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


Bootstrap = str | Sequence[str]  # addresses: text, separated by commas, or a list


def parse_bootstrap(given: object) -> tuple[Address, ...]:
    """Any of the addresses leads to the whole cluster. TypeError for another kind of argument, ValueError for none."""
    if isinstance(given, Mapping):
        raise TypeError(
            "settings are keyword arguments, and the addresses come first: Producer('one:9092,two:9092', acks='all')"
        )
    if isinstance(given, bytes) or not isinstance(given, Sequence):
        raise TypeError(f"bootstrap must be text, addresses separated by commas ('one:9092,two:9092'), not {given!r}")
    texts = given.split(",") if isinstance(given, str) else given
    if any(not isinstance(text, str) for text in texts):
        raise TypeError(f"bootstrap must be a list of addresses such as 'one:9092', not {given!r}")
    if not any(text.strip() for text in texts):
        raise ValueError("the first argument is missing: the addresses of brokers, such as 'one:9092,two:9092'")
    return tuple(parse_address(text) for text in texts if text.strip())
