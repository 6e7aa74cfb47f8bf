"""TLS contexts, from Kafka's settings and PEM (files, or the text itself): of listeners, of connections to brokers.

    ssl.keystore.type=PEM
    ssl.keystore.location=/etc/ixion/broker.pem          # private key and certificate chain in one file
    ssl.truststore.location=/etc/ixion/ca.pem            # whose clients' certificates are believed
    ssl.client.auth=required

Java's keystores are binary. They are refused with the command that converts them.
"""

from __future__ import annotations

import ssl
import tempfile
from typing import Final

from ixion.config import security_settings as settings
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
CONVERT: Final = "convert it: openssl pkcs12 -in FILE.p12 -out FILE.pem -nodes (keytool -importkeystore makes the .p12)"


def context_of(config: BrokerConfig, listener: str) -> ssl.SSLContext:
    """InvalidSettingError says which setting is wrong or missing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_common(context, config, listener)
    wanted = config.of_listener(listener, settings.SSL_CLIENT_AUTH)
    context.verify_mode = _CLIENT_AUTH[wanted]
    if not _load_trusted(context, config, listener) and wanted != "none":
        allowed = f"a PEM file with the authorities of clients, as ssl.client.auth={wanted}"
        raise InvalidSettingError(settings.SSL_TRUSTSTORE_LOCATION.name, "", allowed)
    return context


def client_context_of(config: BrokerConfig, listener: str) -> ssl.SSLContext:
    """For connections to that listener of other brokers: this broker shows its own certificate there, and believes the
    authorities of the trust store, or those of the system. InvalidSettingError as of `context_of`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load_common(context, config, listener)
    context.check_hostname = bool(config.of_listener(listener, settings.SSL_ENDPOINT_IDENTIFICATION_ALGORITHM))
    if not _load_trusted(context, config, listener):
        context.load_default_certs()
    return context


def _load_common(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> None:
    enabled = [VERSIONS[name] for name in config.of_listener(listener, settings.SSL_ENABLED_PROTOCOLS)]
    context.minimum_version, context.maximum_version = min(enabled), max(enabled)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    ciphers = config.of_listener(listener, settings.SSL_CIPHER_SUITES)
    if ciphers:
        try:
            context.set_ciphers(":".join(ciphers))
        except ssl.SSLError as error:
            raise InvalidSettingError(
                settings.SSL_CIPHER_SUITES.name, ",".join(ciphers), "names OpenSSL has"
            ) from error
    _load_key(context, config, listener)


def _load_key(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> None:
    chain = config.of_listener(listener, settings.SSL_KEYSTORE_CERTIFICATE_CHAIN)
    key = config.of_listener(listener, settings.SSL_KEYSTORE_KEY)
    location = config.of_listener(listener, settings.SSL_KEYSTORE_LOCATION)
    password = config.of_listener(listener, settings.SSL_KEY_PASSWORD)
    _check_type(settings.SSL_KEYSTORE_TYPE.name, config.of_listener(listener, settings.SSL_KEYSTORE_TYPE))
    if chain and key:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # ssl reads files only; mode 600, gone at once
            file.write(f"{key}\n{chain}\n")
            file.flush()
            _load_chain(context, settings.SSL_KEYSTORE_KEY.name, file.name, password)
    elif location:
        _check_pem(settings.SSL_KEYSTORE_LOCATION.name, location)
        _load_chain(context, settings.SSL_KEYSTORE_LOCATION.name, location, password)
    else:
        allowed = f"a PEM file with key and certificate, which listener {listener} needs for TLS"
        raise InvalidSettingError(settings.SSL_KEYSTORE_LOCATION.name, "", allowed)


def _load_chain(context: ssl.SSLContext, name: str, path: str, password: str | None) -> None:
    try:
        context.load_cert_chain(path, password=password or "")
    except ssl.SSLError as error:
        allowed = f"a PEM file with a private key and its certificate chain ({error.reason or error})"
        raise InvalidSettingError(
            name, "[hidden]" if name == settings.SSL_KEYSTORE_KEY.name else path, allowed
        ) from error


def _load_trusted(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> bool:
    """Whether there is a trust store."""
    text = config.of_listener(listener, settings.SSL_TRUSTSTORE_CERTIFICATES)
    location = config.of_listener(listener, settings.SSL_TRUSTSTORE_LOCATION)
    kind = config.of_listener(listener, settings.SSL_TRUSTSTORE_TYPE)
    _check_type(settings.SSL_TRUSTSTORE_TYPE.name, kind)
    if location:
        _check_pem(settings.SSL_TRUSTSTORE_LOCATION.name, location)
    if text or location:
        try:
            context.load_verify_locations(cafile=None if text else location, cadata=text or None)
        except ssl.SSLError as error:
            allowed = f"PEM certificates ({error.reason or error})"
            raise InvalidSettingError(settings.SSL_TRUSTSTORE_LOCATION.name, location or "", allowed) from error
    return bool(text or location)


def _check_type(name: str, kind: str) -> None:
    if kind.upper() != "PEM":
        raise InvalidSettingError(name, kind, f"PEM; a store of another type must be converted. {CONVERT}")


def _check_pem(name: str, path: str) -> None:
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise InvalidSettingError(name, path, f"a file that can be read ({error.strerror})") from error
    if b"-----BEGIN" not in start:
        raise InvalidSettingError(name, path, f"a PEM file. {CONVERT}")


def files_of(config: BrokerConfig, listener: str) -> list[str]:
    """The files that a context is made from."""
    named = (settings.SSL_KEYSTORE_LOCATION, settings.SSL_TRUSTSTORE_LOCATION)
    paths = [config.of_listener(listener, setting) for setting in named]
    return [path for path in paths if path]
