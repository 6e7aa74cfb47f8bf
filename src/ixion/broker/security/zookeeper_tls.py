"""TLS to ZooKeeper, from Kafka's settings.

    zookeeper.connect=zk1:2281/kafka                     # the secureClientPort of ZooKeeper
    zookeeper.ssl.client.enable=true
    zookeeper.ssl.truststore.location=/etc/ixion/ca.pem  # default: the system's authorities
    zookeeper.ssl.keystore.location=/etc/ixion/broker.pem  # ZooKeeper requires one by default

The files are read again for every connection, so a certificate can be replaced while the broker runs.
"""

from __future__ import annotations

import logging
import ssl
from typing import Final

from ixion.broker.security.tls import PEM, PKCS12, VERSIONS, check_pem, kind_of, load_chain, load_text, read_store
from ixion.config import cluster_settings as settings
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.setting import Setting

logger = logging.getLogger(__name__)

_BY_NAME: Final = {".p12": PKCS12, ".pfx": PKCS12, ".jks": "JKS"}


class ZooKeeperTls:
    """InvalidSettingError names the setting that is wrong or missing."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._last = make_context(config)
        self._told = ""

    def context(self) -> ssl.SSLContext:
        """A context for one connection. If the files can no longer be used, the last one."""
        try:
            self._last = make_context(self._config)
            self._told = ""
        except (InvalidSettingError, OSError) as error:
            if str(error) != self._told:  # log it once: an unreachable server is tried every second
                logger.warning("connecting to ZooKeeper with the certificates read before: %s", error)
            self._told = str(error)
        return self._last


def make_context(config: BrokerConfig) -> ssl.SSLContext:
    for revoked in (settings.ZOOKEEPER_SSL_CRL_ENABLE, settings.ZOOKEEPER_SSL_OCSP_ENABLE):
        if config[revoked]:
            raise InvalidSettingError(revoked.name, "true", "false: revoked certificates are not looked up")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version, context.maximum_version = _versions(config)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.check_hostname = _checks_names(config)
    ciphers = config[settings.ZOOKEEPER_SSL_CIPHER_SUITES]
    if ciphers:
        try:
            context.set_ciphers(":".join(ciphers))
        except ssl.SSLError as error:
            name = settings.ZOOKEEPER_SSL_CIPHER_SUITES.name
            raise InvalidSettingError(name, ",".join(ciphers), "names OpenSSL has") from error
    _load_own(context, config)
    _load_trusted(context, config)
    return context


def _versions(config: BrokerConfig) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    name = settings.ZOOKEEPER_SSL_PROTOCOL
    chosen = config[settings.ZOOKEEPER_SSL_ENABLED_PROTOCOLS] or (config[name],)
    if chosen == ("TLS",):
        chosen = tuple(VERSIONS)
    if not set(chosen) <= VERSIONS.keys():
        raise InvalidSettingError(name.name, config[name], f"one of {', '.join(VERSIONS)}, TLS")
    enabled = [VERSIONS[each] for each in chosen]
    return min(enabled), max(enabled)


def _checks_names(config: BrokerConfig) -> bool:
    setting = settings.ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM
    value = config[setting]
    if value.lower() not in ("https", ""):
        raise InvalidSettingError(setting.name, value, "HTTPS, or empty")
    return bool(value)


def _load_own(context: ssl.SSLContext, config: BrokerConfig) -> None:
    setting = settings.ZOOKEEPER_SSL_KEYSTORE_LOCATION
    location, password = config[setting], config[settings.ZOOKEEPER_SSL_KEYSTORE_PASSWORD]
    if not location:
        return
    if _kind(config, settings.ZOOKEEPER_SSL_KEYSTORE_TYPE, location) == PKCS12:
        store = read_store(setting.name, location, password)
        if not store.own:
            raise InvalidSettingError(setting.name, location, "a store with a private key and its certificate")
        load_text(context, store.own, setting.name, location, None)
    else:
        check_pem(setting.name, location)
        load_chain(context, setting.name, location, location, password)


def _load_trusted(context: ssl.SSLContext, config: BrokerConfig) -> None:
    setting = settings.ZOOKEEPER_SSL_TRUSTSTORE_LOCATION
    location = config[setting]
    if not location:
        context.load_default_certs()
        return
    text = None
    if _kind(config, settings.ZOOKEEPER_SSL_TRUSTSTORE_TYPE, location) == PKCS12:
        text = read_store(setting.name, location, config[settings.ZOOKEEPER_SSL_TRUSTSTORE_PASSWORD]).trusted
    else:
        check_pem(setting.name, location)
    try:
        context.load_verify_locations(cafile=None if text else location, cadata=text or None)
    except ssl.SSLError as error:
        allowed = f"certificates of authorities ({error.reason or error})"
        raise InvalidSettingError(setting.name, location, allowed) from error


def _kind(config: BrokerConfig, setting: Setting[str | None], location: str) -> str:
    given = config[setting] or next((kind for end, kind in _BY_NAME.items() if location.lower().endswith(end)), PEM)
    return kind_of(setting.name, given)
