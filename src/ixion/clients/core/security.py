"""How the connections of a client are secured: by TLS, by a login, by both, or by neither.

`ClientSettings` carries this value. The shells around the machines do the TLS; the login is part of each connection
machine, so every connection has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion._native import mypyc_attr
from ixion.clients.core.connection import Login

if TYPE_CHECKING:
    import ssl


class Tls:
    """`context` has the trusted authorities and our certificate; it may check the host name."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context


@mypyc_attr(allow_interpreted_subclasses=True)
class Credentials:
    """The credentials of a client. Its text shows no secret."""

    def login(self) -> Login:
        """A login for one connection."""
        raise NotImplementedError


class Security:
    def __init__(self, tls: Tls | None = None, credentials: Credentials | None = None) -> None:
        self.tls = tls
        self.credentials = credentials

    def login(self) -> Login | None:
        return None if self.credentials is None else self.credentials.login()


PLAINTEXT: Final = Security()
