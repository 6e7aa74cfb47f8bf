"""Reads subject and alternative names of the certificate in a TLS context.

Python shows only the certificate of a peer, so we do handshakes in memory: one to get the certificate, and one with a
client that trusts it, because Python decodes only a verified certificate. This also detects an expired certificate and
a wrong private key.
"""

from __future__ import annotations

import ssl
from typing import Any, NamedTuple


class Names(NamedTuple):
    subject: Any
    alternatives: frozenset[Any]


def names_of(server: ssl.SSLContext) -> Names:
    """ssl.SSLError if no client could connect. The context must not be in use elsewhere."""
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
    """ssl.SSLError unless the two trust each other; host names are not checked. Neither may be in use elsewhere."""
    client.check_hostname = False
    _shake_hands(server, client, until_both=True)


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, *, until_both: bool = False) -> ssl.SSLObject:
    """The client's side after the handshake. `until_both`: wait until the server has the client's certificate too."""
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
