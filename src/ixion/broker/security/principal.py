"""The principal of a client: anonymous, or from its TLS certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ixion.broker.security.principal_rules import PrincipalRules

ANONYMOUS: Final = "User:ANONYMOUS"

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


def principal_of(certificate: dict[str, object] | None, rules: PrincipalRules | None = None) -> str:
    """The user of a client's certificate: its subject in Kafka's form, CN=client,OU=team,O=org, mapped by the rules if
    there are any. NoRuleError if no rule matches."""
    subject = (certificate or {}).get("subject")
    if not isinstance(subject, tuple) or not subject:
        return ANONYMOUS
    # A part of several values, such as CN=client+OU=team, is one part: read as two, it would be another subject.
    parts = ["+".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in part) for part in subject]
    name = ",".join(reversed(parts))
    return f"User:{name if rules is None else rules.name_of(name)}"


def _escaped(value: str) -> str:
    return "".join(f"\\{character}" if character in ',+"\\<>;' else character for character in value)
