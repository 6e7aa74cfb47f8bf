"""The connect string: `zk1:2181,zk2:2181,zk3:2181/kafka`, addresses separated by commas, and a path (the chroot)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ixion.broker.metadata.errors import InvalidPathError
from ixion.broker.metadata.path_rules import ROOT, check_path

DEFAULT_PORT: Final = 2181


class InvalidConnectStringError(ValueError):
    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"zookeeper.connect={text!r}: {problem}; expected host:port,host:port/chroot")


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The servers, and the path that contains the whole tree: "" for the root."""

    servers: tuple[Server, ...]
    chroot: str

    def __str__(self) -> str:
        return ",".join(map(str, self.servers)) + self.chroot


def parse_connect(text: str) -> Ensemble:
    addresses, slash, path = text.strip().partition("/")
    chroot = (slash + path).rstrip("/")
    try:
        check_path(chroot or ROOT)
    except InvalidPathError as error:
        raise InvalidConnectStringError(text, str(error)) from error
    servers = tuple(_server(text, address.strip()) for address in addresses.split(",") if address.strip())
    if not servers:
        raise InvalidConnectStringError(text, "it has no server")
    return Ensemble(servers, chroot)


def _server(text: str, address: str) -> Server:
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if ":" in host and not bracketed:
        raise InvalidConnectStringError(text, f"{address!r} is not an address; an IPv6 host needs brackets")
    if not host:
        raise InvalidConnectStringError(text, f"{address!r} has no host")
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
        raise InvalidConnectStringError(text, f"{port!r} is not a port")
    return Server(host, int(port))
