"""One connection to a ZooKeeper server, plain or with TLS.

It reports to its session until it is dropped. After that it may still have a transport: TLS sends a close_notify alert
and waits for the server's, which a hanging server never sends. So the session keeps a dropped link until `gone` is
done, and aborts it if that takes too long.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, Protocol, cast

CLOSED: Final = "closed the connection"
GOODBYE_S: Final = 1.0  # how long to wait for the server's close_notify at the end of a TLS connection
SECURE: Final = "zookeeper.connect must name the secureClientPort"
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")


class Owner(Protocol):
    def link_made(self, link: Link) -> None: ...

    def link_received(self, link: Link, data: bytes) -> None: ...

    def link_lost(self, link: Link, reason: str) -> None: ...


class Link(asyncio.Protocol):
    def __init__(self, owner: Owner) -> None:
        self._owner: Owner | None = owner
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # done when it is closed

    def begin(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._connecting = asyncio.get_running_loop().create_task(self._connect(host, port, tls), name="zookeeper-link")
        self._connecting.add_done_callback(self._tried)

    async def _connect(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        goodbye_s = None if tls is None else GOODBYE_S
        try:
            await loop.create_connection(lambda: self, host, port, ssl=tls, ssl_shutdown_timeout=goodbye_s)
        except ConnectionResetError as error:
            self._lost(why(error) if tls is None else f"ended the TLS handshake, as a port without TLS does; {SECURE}")
        except (OSError, UnicodeError) as error:  # an unknown host name raises one or the other
            self._lost(why(error))

    def _tried(self, _task: asyncio.Task[None]) -> None:
        if self._transport is None:
            self._end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass of it
        if self._owner is None:
            self._transport.abort()
        else:
            self._owner.link_made(self)

    def data_received(self, data: bytes) -> None:
        if self._owner is not None:
            self._owner.link_received(self, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._end()
        self._lost(CLOSED if error is None else why(error))

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def drop(self, *, politely: bool) -> None:
        """Close the connection, or stop connecting. `politely`: send what was written, and end TLS with close_notify.
        For a server that responds; another one could keep the connection open, so it is aborted."""
        self._owner = None
        if self._transport is None:
            if self._connecting is not None:
                self._connecting.cancel()
        elif politely:
            self._transport.close()
        else:
            self._transport.abort()

    def _lost(self, reason: str) -> None:
        if self._owner is not None:
            self._owner.link_lost(self, reason)

    def _end(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)


def why(error: BaseException) -> str:
    """The error in one line, with advice where the TLS error has none."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return f"does not use TLS; {SECURE}"
    if isinstance(error, ssl.SSLError) and error.reason is not None:
        said = error.reason.lower().replace("_", " ")
        if "alert" in said:
            return f"refused the TLS connection ({said}); zookeeper.ssl.keystore.location names our certificate"
        return f"TLS failed: {said}"
    return " ".join(str(error).split()) or type(error).__name__


async def let_go(links: set[Link]) -> None:
    """Returns when these links are closed, after at most two times GOODBYE_S."""
    for politely in (True, False):
        waiting = [link.gone for link in links if not link.gone.done()]
        if not waiting:
            return
        if not politely:
            for link in list(links):
                link.drop(politely=False)
        await asyncio.wait(waiting, timeout=GOODBYE_S)
