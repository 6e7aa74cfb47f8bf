"""Whether a broker listens at its address, asked before Spark is started: that takes seconds."""

from __future__ import annotations

import socket
import struct
from typing import Final

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.reachable import connect

TLS_TIMEOUT_S: Final = 1.0  # an alert is sent at once
_HELLO: Final = struct.pack(">ihhih", 10, 18, 0, 7, -1)  # ApiVersions: length, key, version, correlation id, no name
_TLS_ALERT: Final = b"\x15\x03"  # how a TLS server answers bytes that are no handshake


def need_reachable(bootstrap: str, protocol: str = "PLAINTEXT") -> None:
    """Fails if no address accepts a connection, or if the one that does wants TLS while PROTOCOL has none.

    A Kafka client takes the first bytes of a TLS alert for a length, and waits for 350 MB that never come.
    """
    addresses = [address.strip() for address in bootstrap.split(",")]
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise PipelineError(f"the broker's address {address!r} is not host:port")
    try:
        connection = connect(addresses)
    except ConnectionError as error:
        raise unreachable(bootstrap, str(error)) from None
    with connection:
        if protocol in ("PLAINTEXT", "SASL_PLAINTEXT") and _wants_tls(connection):
            hint = f'[source.options] "kafka.security.protocol" = "{_with_tls(protocol)}"'
            raise PipelineError(f"the broker at {bootstrap} wants TLS", hint=hint)


def unreachable(bootstrap: str, said: str, hint: str = "") -> PipelineError:
    hint = hint or "is it running (ixion serve), and is source.bootstrap its address?"
    return PipelineError(f"no broker answers at {bootstrap}: {said}", hint=hint, retry=True)


def _wants_tls(connection: socket.socket) -> bool:
    """Whether the broker answers with a TLS alert. If it does not answer in time, the client will find out."""
    connection.settimeout(TLS_TIMEOUT_S)
    try:
        connection.sendall(_HELLO)
        return connection.recv(len(_TLS_ALERT)) == _TLS_ALERT
    except OSError:
        return False


def _with_tls(protocol: str) -> str:
    return "SASL_SSL" if protocol.startswith("SASL") else "SSL"
