"""TLS contexts for listeners and for connections to brokers, from Kafka's settings: PEM (files or text) and PKCS#12.

    ssl.keystore.type=PEM
    ssl.keystore.location=/etc/ixion/broker.pem          # private key and certificate chain in one file
    ssl.truststore.location=/etc/ixion/ca.pem            # the authorities of clients' certificates
    ssl.client.auth=required

Java's own stores (JKS) are refused, with the command that converts them. Settings that select parts of Java are refused
too.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from typing import Any, Final

from ixion.broker.security.alerts import AlertingContext
from ixion.broker.security.pkcs12 import Store, read_pkcs12
from ixion.config import security_settings as settings
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.setting import Setting

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
MOST_STORE: Final = 16 << 20  # bytes of a store
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
OPENSSL: Final = "openssl pkcs12 -in FILE.p12 -out FILE.pem -nodes"
CONVERT: Final = f"convert it: {OPENSSL} (keytool -importkeystore -deststoretype PKCS12 makes the .p12)"
INSTALL: Final = f"pip install cryptography, or {OPENSSL}"
# Parts of Java that we cannot load: only the defaults are accepted.
_OF_JAVA: Final[tuple[Setting[Any], ...]] = (
    *(settings.SSL_PROVIDER, settings.SSL_KEYMANAGER_ALGORITHM, settings.SSL_TRUSTMANAGER_ALGORITHM),
    *(settings.SSL_SECURE_RANDOM_IMPLEMENTATION, settings.SSL_ENGINE_FACTORY_CLASS),
)


def context_of(config: BrokerConfig, listener: str) -> ssl.SSLContext:
    """InvalidSettingError names the setting that is wrong or missing."""
    _check_java(config, listener)
    context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    _load_common(context, config, listener)
    wanted = config.of_listener(listener, settings.SSL_CLIENT_AUTH)
    context.verify_mode = _CLIENT_AUTH[wanted]
    if not _load_trusted(context, config, listener) and wanted != "none":
        allowed = f"a PEM file with the authorities of clients, as ssl.client.auth={wanted}"
        raise InvalidSettingError(settings.SSL_TRUSTSTORE_LOCATION.name, "", allowed)
    return context


def client_context_of(config: BrokerConfig, listener: str) -> ssl.SSLContext:
    """For connections to that listener of other brokers: this broker sends its own certificate, and trusts the
    authorities of the trust store, or those of the system. InvalidSettingError as in `context_of`."""
    _check_java(config, listener)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load_common(context, config, listener)
    context.check_hostname = bool(config.of_listener(listener, settings.SSL_ENDPOINT_IDENTIFICATION_ALGORITHM))
    if not _load_trusted(context, config, listener):
        context.load_default_certs()
    return context


def _load_common(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> None:
    enabled = [VERSIONS[name] for name in config.of_listener(listener, settings.SSL_ENABLED_PROTOCOLS)]
    if not enabled:
        raise InvalidSettingError(settings.SSL_ENABLED_PROTOCOLS.name, "", f"one or more of {', '.join(VERSIONS)}")
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


def _check_java(config: BrokerConfig, listener: str) -> None:
    for setting in _OF_JAVA:
        value = config.of_listener(listener, setting)
        if value != setting.default:
            raise InvalidSettingError(setting.name, str(value), "the default only: ixion uses OpenSSL, not Java")
    protocol = config.of_listener(listener, settings.SSL_PROTOCOL)
    if protocol not in (*VERSIONS, "TLS"):
        raise InvalidSettingError(settings.SSL_PROTOCOL.name, protocol, f"one of {', '.join(VERSIONS)}, TLS")


def _load_key(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> None:
    chain = config.of_listener(listener, settings.SSL_KEYSTORE_CERTIFICATE_CHAIN)
    key = config.of_listener(listener, settings.SSL_KEYSTORE_KEY)
    location = config.of_listener(listener, settings.SSL_KEYSTORE_LOCATION)
    password = config.of_listener(listener, settings.SSL_KEY_PASSWORD)
    kind = kind_of(settings.SSL_KEYSTORE_TYPE.name, config.of_listener(listener, settings.SSL_KEYSTORE_TYPE))
    if chain and key:
        load_text(context, f"{key}\n{chain}\n", settings.SSL_KEYSTORE_KEY.name, "[hidden]", password)
    elif not location:
        allowed = f"a PEM file with key and certificate, which listener {listener} needs for TLS"
        raise InvalidSettingError(settings.SSL_KEYSTORE_LOCATION.name, "", allowed)
    elif kind == PKCS12:
        secret = config.of_listener(listener, settings.SSL_KEYSTORE_PASSWORD)
        store = read_store(settings.SSL_KEYSTORE_LOCATION.name, location, secret)
        if not store.own:
            allowed = "a store with a private key and its certificate"
            raise InvalidSettingError(settings.SSL_KEYSTORE_LOCATION.name, location, allowed)
        load_text(context, store.own, settings.SSL_KEYSTORE_LOCATION.name, location, None)
    else:
        check_pem(settings.SSL_KEYSTORE_LOCATION.name, location)
        load_chain(context, settings.SSL_KEYSTORE_LOCATION.name, location, location, password)


def load_text(context: ssl.SSLContext, text: str, name: str, shown: str, password: str | None) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # ssl reads only files; mode 600, deleted at once
        file.write(text)
        file.flush()
        load_chain(context, name, file.name, shown, password)


def load_chain(context: ssl.SSLContext, name: str, path: str, shown: str, password: str | None) -> None:
    try:
        context.load_cert_chain(path, password=password or "")
    except ssl.SSLError as error:
        allowed = f"a private key and its certificate chain ({error.reason or error})"
        raise InvalidSettingError(name, shown, allowed) from error


def _load_trusted(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> bool:
    """Whether there is a trust store."""
    text = config.of_listener(listener, settings.SSL_TRUSTSTORE_CERTIFICATES)
    location = config.of_listener(listener, settings.SSL_TRUSTSTORE_LOCATION)
    kind = kind_of(settings.SSL_TRUSTSTORE_TYPE.name, config.of_listener(listener, settings.SSL_TRUSTSTORE_TYPE))
    name = settings.SSL_TRUSTSTORE_LOCATION.name
    if location and not text:
        if kind == PKCS12:
            text = read_store(name, location, config.of_listener(listener, settings.SSL_TRUSTSTORE_PASSWORD)).trusted
        else:
            check_pem(name, location)
    if text or location:
        try:
            context.load_verify_locations(cafile=None if text else location, cadata=text or None)
        except ssl.SSLError as error:
            allowed = f"certificates of authorities ({error.reason or error})"
            raise InvalidSettingError(name, location or "", allowed) from error
    return bool(text or location)


def kind_of(name: str, kind: str) -> str:
    if kind.upper() not in (PEM, PKCS12):
        raise InvalidSettingError(name, kind, f"PEM or PKCS12; a store of another type must be converted. {CONVERT}")
    return kind.upper()


def read_store(name: str, path: str, password: str | None) -> Store:
    data = _read(name, path, lambda file: file.read(MOST_STORE + 1))
    try:
        return read_pkcs12(data, password)
    except ImportError:
        raise InvalidSettingError(name, path, f"a PEM file; PKCS12 needs a library: {INSTALL}") from None
    except ValueError:
        allowed = f"a PKCS12 store that opens with its password; a Java store (JKS) must be converted. {CONVERT}"
        raise InvalidSettingError(name, path, allowed) from None


def check_pem(name: str, path: str) -> None:
    start = _read(name, path, lambda file: file.read(4096))
    if b"-----BEGIN" not in start:
        raise InvalidSettingError(name, path, f"a PEM file, or PKCS12 with the type of the store set. {CONVERT}")


def _read(name: str, path: str, read: Callable[[Any], bytes]) -> bytes:
    try:
        with open(path, "rb") as file:
            return read(file)
    except OSError as error:
        raise InvalidSettingError(name, path, f"a file that can be read ({error.strerror})") from error


def files_of(config: BrokerConfig, listener: str) -> list[str]:
    """The files from which a context is made."""
    named = (settings.SSL_KEYSTORE_LOCATION, settings.SSL_TRUSTSTORE_LOCATION)
    paths = [config.of_listener(listener, setting) for setting in named]
    return [path for path in paths if path]
