"""One connection to a ZooKeeper server, plain or with TLS.

It reports to its session until it is dropped. After that it still has a transport for a while: one with TLS says
goodbye and waits for the server's goodbye, which a server that hangs never sends. So a dropped link stays in the care
of its session until `gone` is done, and is aborted if that takes too long.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, Protocol, cast

CLOSED: Final = "closed the connection"
GOODBYE_S: Final = 1.0  # patience with a server that does not answer to the end of a TLS connection
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
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # nothing of it is left

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
        except (OSError, UnicodeError) as error:  # a name that cannot be looked up is one or the other
            self._lost(why(error))

    def _tried(self, _task: asyncio.Task[None]) -> None:
        if self._transport is None:
            self._end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is not derived from it
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
        """Close the connection, or give up making it. Politely: what was written is sent, and TLS ends with a goodbye.
        That is for a server that answers; any other is cut off, since it could keep the connection open."""
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
    """In one line, and in words that say what to do where TLS itself does not."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return f"does not speak TLS; {SECURE}"
    if isinstance(error, ssl.SSLError) and error.reason is not None:
        said = error.reason.lower().replace("_", " ")
        if "alert" in said:
            return f"refused the TLS connection ({said}); zookeeper.ssl.keystore.location names our certificate"
        return f"TLS failed: {said}"
    return " ".join(str(error).split()) or type(error).__name__


async def let_go(links: set[Link]) -> None:
    """Returns when nothing is left of these links, and waits no longer than for a goodbye, twice."""
    for politely in (True, False):
        waiting = [link.gone for link in links if not link.gone.done()]
        if not waiting:
            return
        if not politely:
            for link in list(links):
                link.drop(politely=False)
        await asyncio.wait(waiting, timeout=GOODBYE_S)
