"""Reads the security settings of a client: Kafka's names, with underscores. Errors name the setting.

Producer("broker:9094", security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", sasl_username="alice",
         sasl_password=secret, ssl_truststore_location="ca.pem")

Certificates and keys are PEM: in files (`…_location`), or the text itself. Without a truststore the system's
authorities are trusted. The host name in the broker's certificate is checked unless
`ssl_endpoint_identification_algorithm` is "". `ssl_context` takes a context of the caller, instead of all other `ssl_…`
settings. No message shows a password or a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict

from ixion.clients.core.security import PLAINTEXT, Credentials, Security, Tls

if TYPE_CHECKING:
    import ssl

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ALGORITHMS: Final = ("https", "")


class SecurityOptions(TypedDict, total=False):
    """Settings of all clients."""

    sasl_mechanism: str | None
    sasl_oauthbearer_token: str | Callable[[], str] | None
    sasl_password: str | None
    sasl_tokenauth: str | None
    sasl_username: str | None
    security_protocol: str
    ssl_cipher_suites: str | None
    ssl_context: ssl.SSLContext | None
    ssl_endpoint_identification_algorithm: str
    ssl_key_password: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None


NAMES: Final = frozenset(SecurityOptions.__annotations__)
# Names of these settings in other clients.
ELSEWHERE: Final = {
    "sasl_jaas_config": "sasl_username and sasl_password",
    "sasl_plain_password": "sasl_password",
    "sasl_plain_username": "sasl_username",
    "ssl_ca_location": "ssl_truststore_location",
    "ssl_cafile": "ssl_truststore_location",
    "ssl_certfile": "ssl_keystore_location",
    "ssl_certificate_location": "ssl_keystore_location",
    "ssl_check_hostname": "ssl_endpoint_identification_algorithm",
    "ssl_password": "ssl_key_password",
}


def split_security(given: Mapping[str, Any]) -> tuple[Security, dict[str, Any]]:
    """The security of the given settings, and the other settings."""
    return read_security(given), {name: value for name, value in given.items() if name not in NAMES}


def read_security(given: Mapping[str, Any]) -> Security:
    """The security of the given settings. TypeError or ValueError, naming it, for a wrong one."""
    found = {name: value for name in sorted(NAMES) if (value := given.get(name)) is not None}
    for name, value in found.items():
        if name == "sasl_oauthbearer_token" and callable(value):
            continue
        if name != "ssl_context" and not isinstance(value, str):
            raise TypeError(f"{name} must be text, not of type {type(value).__name__}")
    protocol = found.pop("security_protocol", "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise ValueError(f"security_protocol is {protocol!r}; allowed are {', '.join(PROTOCOLS)}")
    for prefix in ("sasl", "ssl"):
        if prefix.upper() not in protocol.split("_"):
            surplus = sorted(name for name in found if name.startswith(prefix))
            if surplus:
                allowed = " or ".join(name for name in PROTOCOLS if prefix.upper() in name.split("_"))
                raise ValueError(f"{surplus[0]} needs security_protocol {allowed}, not {protocol}")
    if protocol == "PLAINTEXT":
        return PLAINTEXT
    credentials = read_credentials(found) if protocol.startswith("SASL") else None
    return Security(Tls(read_context(found)) if protocol.endswith("SSL") else None, credentials)


def read_credentials(found: Mapping[str, Any]) -> Credentials:
    from ixion.clients.core.sasl_login import MECHANISMS, BearerCredentials, SaslCredentials

    mechanism = found.get("sasl_mechanism", "")
    if mechanism not in MECHANISMS:
        raise ValueError(f"sasl_mechanism is {mechanism!r}; allowed are {', '.join(MECHANISMS)}")
    if mechanism == "OAUTHBEARER":
        token = found.get("sasl_oauthbearer_token")
        others = [name for name in ("sasl_username", "sasl_password", "sasl_tokenauth") if name in found]
        if not token or others:
            raise ValueError(f"OAUTHBEARER needs sasl_oauthbearer_token, and no {' or '.join(others or ['user'])}")
        return BearerCredentials(token if callable(token) else lambda: str(token))
    if "sasl_oauthbearer_token" in found:
        raise ValueError(f"sasl_oauthbearer_token needs sasl_mechanism OAUTHBEARER, not {mechanism}")
    name, password = found.get("sasl_username", ""), found.get("sasl_password", "")
    for setting, value in (("sasl_username", name), ("sasl_password", password)):
        if not value or "\0" in value:
            raise ValueError(f"{setting} is missing or has a NUL in it; {mechanism} needs it")
    chosen = found.get("sasl_tokenauth", "false")
    if chosen not in ("true", "false") or (chosen == "true" and not mechanism.startswith("SCRAM")):
        raise ValueError("sasl_tokenauth is true or false, and true with a mechanism of SCRAM only")
    return SaslCredentials(mechanism, name, password, chosen == "true")


def read_context(found: Mapping[str, Any]) -> ssl.SSLContext:
    import ssl

    context = found.get("ssl_context")
    if context is not None:
        others = sorted(name for name in found if name.startswith("ssl_") and name != "ssl_context")
        if not isinstance(context, ssl.SSLContext):
            raise TypeError(f"ssl_context must be an ssl.SSLContext, not of type {type(context).__name__}")
        if others:
            raise ValueError(f"{others[0]} and ssl_context exclude each other")
        return context
    algorithm = found.get("ssl_endpoint_identification_algorithm", "https")
    if algorithm not in ALGORITHMS:
        raise ValueError(f"ssl_endpoint_identification_algorithm is {algorithm!r}; allowed are 'https' and ''")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = algorithm == "https"
    ciphers = found.get("ssl_cipher_suites")
    if ciphers:
        try:
            context.set_ciphers(ciphers.replace(",", ":"))
        except ssl.SSLError:
            raise ValueError(f"ssl_cipher_suites is {ciphers!r}; OpenSSL knows none of them") from None
    load_trusted(context, found)
    load_own(context, found)
    return context


def load_trusted(context: ssl.SSLContext, found: Mapping[str, str]) -> None:
    import ssl

    location, text = found.get("ssl_truststore_location"), found.get("ssl_truststore_certificates")
    if location and text:
        raise ValueError("ssl_truststore_location and ssl_truststore_certificates exclude each other")
    if not location and not text:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cafile=location, cadata=text)
    except ssl.SSLError as error:
        name = "ssl_truststore_location" if location else "ssl_truststore_certificates"
        where = f" {location!r}" if location else ""
        raise ValueError(f"{name}{where} has no PEM certificates ({error.reason or error})") from None
    except OSError as error:
        raise ValueError(f"ssl_truststore_location {location!r} cannot be read: {error.strerror}") from None


def load_own(context: ssl.SSLContext, found: Mapping[str, str]) -> None:
    """Load the client's certificate, for brokers that require one."""
    location, password = found.get("ssl_keystore_location"), found.get("ssl_key_password", "")
    key, chain = found.get("ssl_keystore_key"), found.get("ssl_keystore_certificate_chain")
    if (key is None) != (chain is None):
        missing = "ssl_keystore_key" if key is None else "ssl_keystore_certificate_chain"
        raise ValueError(f"{missing} is missing; key and certificate belong together")
    if key is not None and location:
        raise ValueError("ssl_keystore_location and ssl_keystore_key exclude each other")
    if location:
        load_chain(context, location, password, f"ssl_keystore_location {location!r}")
    elif key is not None:
        import tempfile

        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # ssl reads files only; mode 600, gone at once
            file.write(f"{key}\n{chain}\n")
            file.flush()
            load_chain(context, file.name, password, "ssl_keystore_key")


def load_chain(context: ssl.SSLContext, path: str, password: str, about: str) -> None:
    import ssl

    try:
        context.load_cert_chain(path, password=password)
    except ssl.SSLError as error:
        text = "no PEM file with a private key and its certificates, or ssl_key_password is wrong"
        raise ValueError(f"{about} is {text} ({error.reason or error})") from None
    except OSError as error:
        raise ValueError(f"{about} cannot be read: {error.strerror}") from None
