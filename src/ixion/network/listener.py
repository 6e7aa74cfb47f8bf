"""An address that clients connect to: as it is configured, and as it was bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ixion.security.gate import Gate

if TYPE_CHECKING:
    import ssl

    from ixion.security.principal_rules import PrincipalRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str  # PLAINTEXT, INTERNAL, CONTROLLER …
    host: str = "127.0.0.1"  # empty: every interface
    port: int = 9092  # 0: one that is free
    control_plane: bool = False  # requests of the controller, on processors, a queue and a handler of their own
    inter_broker: bool = False  # brokers come in even when clients have used up max.connections
    tls: Callable[[], ssl.SSLContext] | None = None  # asked for every connection, so that certificates can change
    gate: Callable[[], Gate] | None = None  # one for every connection: clients must authenticate
    principal_rules: PrincipalRules | None = None  # users from the subjects of certificates; None: the subjects
    first_max_bytes: int = 512 * 1024  # of a request before the client has authenticated
    backlog: int = 1024  # connections that the system keeps ready while accepting waits

    @property
    def protected(self) -> bool:
        return self.control_plane or self.inter_broker


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A listener with the port that it got."""

    name: str
    host: str
    port: int


class BindError(Exception):
    """A listener that cannot have its address."""
