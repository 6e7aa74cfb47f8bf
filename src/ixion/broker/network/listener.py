"""An address that clients connect to, as configured and as bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl

    from ixion.broker.security.gate import Gate
    from ixion.broker.security.principal_rules import PrincipalRules


class Listener(NamedTuple):
    name: str  # PLAINTEXT, INTERNAL, CONTROLLER …
    host: str = "127.0.0.1"  # empty: every interface
    port: int = 9092  # 0: any free port
    control_plane: bool = False  # for the controller, with its own processors, queue and handler
    inter_broker: bool = False  # accepts brokers even when clients have used up max.connections
    tls: Callable[[], ssl.SSLContext] | None = None  # called for every connection, so that certificates can change
    gate: Callable[[], Gate] | None = None  # called for every connection; clients must authenticate
    principal_rules: PrincipalRules | None = None  # users from the subjects of certificates; None: the subjects
    first_max_bytes: int = 512 * 1024  # of a request before the client has authenticated
    backlog: int = 1024  # connections that the system queues while accepting waits

    @property
    def protected(self) -> bool:
        return self.control_plane or self.inter_broker


class BoundListener(NamedTuple):
    """A listener with its bound port."""

    name: str
    host: str
    port: int


class BindError(Exception):
    """A listener cannot bind its address."""
