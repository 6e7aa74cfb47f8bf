"""Converts PKCS#12 key stores (.p12, .pfx) to PEM text, which Python's TLS contexts load.

Uses cryptography (the extra `security`), which only a broker with such a store imports. Without it, convert
the store: openssl pkcs12 -in FILE.p12 -out FILE.pem -nodes
"""

from __future__ import annotations

from typing import NamedTuple


class Store(NamedTuple):
    own: str  # private key and its certificate chain; empty if there is none
    trusted: str  # every certificate in it


def read_pkcs12(data: bytes, password: str | None) -> Store:
    """ImportError without the library; ValueError if the data is not such a store, or the password is wrong."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    certificates = [each.certificate for each in found.additional_certs]
    own = ""
    if found.key is not None and found.cert is not None:
        key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        certificates.insert(0, found.cert.certificate)
        own = "".join(text.decode() for text in (key, *(each.public_bytes(Encoding.PEM) for each in certificates)))
    elif found.cert is not None:
        certificates.insert(0, found.cert.certificate)
    return Store(own, "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates))
