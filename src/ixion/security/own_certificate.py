"""What the certificate of a TLS context says: its subject and its alternative names.

Python shows the certificate of a peer only, so the context talks to a client in memory: once to get the certificate,
and once more with that certificate as the one that the client believes, because only a verified one is decoded. So a
certificate that has expired, or whose key does not belong to it, is found out as well.
"""

from __future__ import annotations

import ssl
from typing import Any, NamedTuple


class Names(NamedTuple):
    subject: Any
    alternatives: frozenset[Any]


def names_of(server: ssl.SSLContext) -> Names:
    """ssl.SSLError if no client could connect. The context must not be in use by others."""
    wanted, server.verify_mode = server.verify_mode, ssl.CERT_NONE  # our client has no certificate
    try:
        return _names_of(server)
    finally:
        server.verify_mode = wanted


def _names_of(server: ssl.SSLContext) -> Names:
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    found = _shake_hands(server, client).getpeercert(binary_form=True)
    assert found is not None
    client.load_verify_locations(cadata=ssl.DER_cert_to_PEM_cert(found))
    client.verify_mode = ssl.CERT_REQUIRED
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    certificate = _shake_hands(server, client).getpeercert() or {}
    return Names(certificate.get("subject"), frozenset(certificate.get("subjectAltName", ())))


def check_pair(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """ssl.SSLError unless the two believe each other. Host names do not count. Neither may be in use by others."""
    client.check_hostname = False
    _shake_hands(server, client, until_both=True)


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, *, until_both: bool = False) -> ssl.SSLObject:
    """The client's side, which knows the certificate. `until_both`: and the server knows the client's."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = server.wrap_bio(up, down, server_side=True)
    ours = client.wrap_bio(down, up)
    last = theirs if until_both else ours
    for _ in range(10):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            if side is last:
                return ours
    raise ssl.SSLError("the handshake does not end")
