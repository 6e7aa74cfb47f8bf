from __future__ import annotations

import pytest

from ixion.broker.security.principal import principal_of

CN, OU, O = ("commonName", "organizationalUnitName", "organizationName")  # noqa: E741


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ((((O, "org"),), ((OU, "team"),), ((CN, "client"),)), "CN=client,OU=team,O=org"),
        ((((O, "org"),), ((CN, "client"), (OU, "team"))), "CN=client+OU=team,O=org"),
        ((((O, "org"),), ((CN, "client+OU=team"),)), r"CN=client\+OU\=team,O=org"),
    ],
)
def test_a_part_of_several_values_is_one_part(subject: tuple[object, ...], name: str) -> None:
    """As Java writes it (RFC 2253). Read as two parts, it would be another user."""
    assert principal_of({"subject": subject}).replace(r"\=", "=") == "User:" + name.replace(r"\=", "=")
