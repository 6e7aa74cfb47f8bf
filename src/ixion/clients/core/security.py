"""How the connections of a client are secured: by TLS, by a login, by both, or by neither.

This is a value that `ClientSettings` carries. The shells around the machines do the TLS; the login is a part of each
connection machine, so every connection gets one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion._native import mypyc_attr
from ixion.clients.core.connection import Login

if TYPE_CHECKING:
    import ssl


class Tls:
    """`context` has the authorities to trust and our certificate; it checks the host name if it is set to."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context


@mypyc_attr(allow_interpreted_subclasses=True)
class Credentials:
    """What a client logs in with. No secret is a part of its text."""

    def login(self) -> Login:
        """For one connection."""
        raise NotImplementedError


class Security:
    def __init__(self, tls: Tls | None = None, credentials: Credentials | None = None) -> None:
        self.tls = tls
        self.credentials = credentials

    def login(self) -> Login | None:
        return None if self.credentials is None else self.credentials.login()


PLAINTEXT: Final = Security()
