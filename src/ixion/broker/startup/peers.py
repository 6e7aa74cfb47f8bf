"""How this broker secures its connections to other brokers, by the settings of the listener between brokers.

    security.inter.broker.protocol=SASL_SSL                     # or inter.broker.listener.name=NAME
    sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
    listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=...   # username and password of this broker
    sasl.oauthbearer.token.endpoint.url=file:/...               # with OAUTHBEARER: the token of this broker

`connect_to` makes all of these connections: for the controller's requests to brokers, the fetches of followers,
requests to the controller and markers of transactions. TLS shows the certificate of this broker's own listener of that
name; when its settings change, new connections get the new certificate (KIP-226).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.broker.startup.certificates import Certificates
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.listeners import uses_sasl, uses_tls
from ixion.clients.address import Address
from ixion.clients.channel import Channel, Connect, connect
from ixion.clients.core.security import Credentials, Security, Tls
from ixion.clients.faults import AuthenticationError
from ixion.config import network_settings as network
from ixion.config import security_settings as security
from ixion.config.broker import BrokerConfig
from ixion.config.dynamic import DynamicConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import listeners

OAUTHBEARER: Final = "OAUTHBEARER"


def check_peers(config: BrokerConfig) -> None:
    """StartupError if this broker could not connect to others of its cluster."""
    known = listeners(config)
    for listener in (known.inter_broker, known.control_plane):
        if listener is not None:
            try:
                security_of(config, listener)
            except InvalidSettingError as error:
                raise StartupError(f"connections to other brokers, listener {listener}: {error}") from error


def connect_to(config: DynamicConfig, listener: str) -> Connect:
    """Makes channels to that listener of other brokers."""
    secure = security_of(config.current, listener, lambda made: config.listen(made.change, made.check))
    if secure is None:
        return connect

    def connect_secured(address: Address, client_id: str, request_timeout_s: float) -> Channel:
        return Channel(address, client_id, request_timeout_s=request_timeout_s, secure=secure)

    return connect_secured


def security_of(
    config: BrokerConfig, listener: str, follow: Callable[[Certificates], None] = lambda _: None
) -> Callable[[], Security] | None:
    """None: neither TLS nor a login. InvalidSettingError if a setting is missing or wrong. `follow` makes certificates
    follow changed settings."""
    endpoint = next(each for each in listeners(config).bound if each.listener == listener)
    if endpoint.protocol == "PLAINTEXT":
        return None
    credentials = credentials_of(config, listener) if uses_sasl(endpoint) else None
    if not uses_tls(endpoint):
        plain = Security(None, credentials)
        return lambda: plain
    certificates = Certificates(config, listener, as_client=True)
    follow(certificates)
    return lambda: Security(Tls(certificates.context()), credentials)


def credentials_of(config: BrokerConfig, listener: str) -> Credentials:
    from ixion.broker.security.jaas import login_of
    from ixion.clients.core.sasl_login import MECHANISMS, SaslCredentials

    setting = network.SASL_MECHANISM_INTER_BROKER_PROTOCOL
    mechanism = config[setting]
    if mechanism not in MECHANISMS:
        raise InvalidSettingError(setting.name, mechanism, f"one of {', '.join(MECHANISMS)}")
    enabled = config.of_listener(listener, security.SASL_ENABLED_MECHANISMS)
    if mechanism not in enabled:
        raise InvalidSettingError(setting.name, mechanism, f"one of sasl.enabled.mechanisms ({', '.join(enabled)})")
    if mechanism == OAUTHBEARER:
        return token_of(config, listener)
    name = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = config.jaas_of(listener, mechanism)
    if text is None:
        raise InvalidSettingError(name, "", "set, with the username and password of this broker")
    try:
        return SaslCredentials(mechanism, *login_of(text, mechanism))
    except ValueError as error:
        raise InvalidSettingError(name, "[hidden]", f"a login module with a login: {error}") from None


def token_of(config: BrokerConfig, listener: str) -> Credentials:
    from ixion.broker.security.jaas import check_bearer_module
    from ixion.broker.security.token_file import TokenFile
    from ixion.clients.core.sasl_login import BearerCredentials

    text = config.jaas_of(listener, OAUTHBEARER)
    if text is not None:
        try:
            check_bearer_module(text)
        except ValueError as error:
            name = f"listener.name.{listener.lower()}.oauthbearer.sasl.jaas.config"
            raise InvalidSettingError(name, "[hidden]", f"left out, or a login module: {error}") from None
    setting = security.SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL
    url = config.of_listener(listener, setting) or ""
    try:
        file = TokenFile(url)
        file.read()
    except ValueError as error:
        allowed = f"the file: URL of a token, with which this broker logs in to others ({error})"
        raise InvalidSettingError(setting.name, url, allowed) from None

    def give() -> str:
        try:
            return file.read()
        except ValueError as error:
            raise AuthenticationError(str(error)) from None

    return BearerCredentials(give)
