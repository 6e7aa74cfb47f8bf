"""The principal of a client that showed a certificate."""

from __future__ import annotations

from typing import Final

from ixion.security.gate import ANONYMOUS

_SHORT: Final = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "domainComponent": "DC",
    "streetAddress": "STREET",
    "userId": "UID",
}


def principal_of(certificate: dict[str, object] | None) -> str:
    """The subject of a client's certificate as Kafka writes it: CN=client,OU=team,O=org."""
    subject = (certificate or {}).get("subject")
    if not isinstance(subject, tuple) or not subject:
        return ANONYMOUS
    pairs = [pair for part in subject for pair in part]
    return "User:" + ",".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in reversed(pairs))


def _escaped(value: str) -> str:
    return "".join(f"\\{character}" if character in ',+"\\<>;' else character for character in value)
