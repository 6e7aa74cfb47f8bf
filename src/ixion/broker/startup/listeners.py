"""The listeners of the network from the broker's settings: addresses, TLS, and whether clients must authenticate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.broker.network import Listener
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.mechanisms import Logins, gate_of, mechanisms_of
from ixion.config import network_settings as network
from ixion.config import security_settings as security
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import Endpoint, listeners

if TYPE_CHECKING:
    from ixion.broker.security.principal_rules import PrincipalRules
    from ixion.broker.startup.certificates import Certificates


def listeners_of(config: BrokerConfig, logins: Logins) -> list[Listener]:
    known = listeners(config)
    backlog = config[network.SOCKET_LISTEN_BACKLOG_SIZE]
    return [
        Listener(
            name=endpoint.listener,
            host=endpoint.host,
            port=endpoint.port,
            control_plane=endpoint.listener == known.control_plane,
            inter_broker=endpoint.listener == known.inter_broker and len(known.bound) > 1,
            tls=certificates_of(config, endpoint.listener, logins).context if uses_tls(endpoint) else None,
            principal_rules=principal_rules_of(config, endpoint.listener) if uses_tls(endpoint) else None,
            gate=gate_of(config, endpoint.listener, logins) if uses_sasl(endpoint) else None,
            first_max_bytes=config[security.SASL_SERVER_MAX_RECEIVE_SIZE],
            backlog=max(backlog, 1024),
        )
        for endpoint in known.bound
    ]


def certificates_of(config: BrokerConfig, listener: str, logins: Logins) -> Certificates:
    from ixion.broker.startup.certificates import Certificates

    made = Certificates(config, listener)
    logins.certificates.append(made)
    return made


def principal_rules_of(config: BrokerConfig, listener: str) -> PrincipalRules | None:
    setting = security.SSL_PRINCIPAL_MAPPING_RULES
    text = config.of_listener(listener, setting)
    if text.strip() == setting.default:
        return None
    from ixion.broker.security.principal_rules import PrincipalRules

    try:
        return PrincipalRules(text)
    except ValueError as error:
        raise InvalidSettingError(
            setting.name, text, f"rules of the form RULE:pattern/user/ or DEFAULT ({error})"
        ) from None


def uses_tls(endpoint: Endpoint) -> bool:
    return endpoint.protocol in ("SSL", "SASL_SSL")


def uses_sasl(endpoint: Endpoint) -> bool:
    return endpoint.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def authenticates(config: BrokerConfig, endpoint: Endpoint) -> bool:
    """Whether every client of the listener must authenticate."""
    return uses_sasl(endpoint) or (
        uses_tls(endpoint) and config.of_listener(endpoint.listener, security.SSL_CLIENT_AUTH) == "required"
    )


def check_security(config: BrokerConfig, endpoint: Endpoint) -> None:
    """StartupError if the listener could serve no client."""
    try:
        if uses_tls(endpoint):
            from ixion.broker.startup.certificates import Certificates

            Certificates(config, endpoint.listener)
            principal_rules_of(config, endpoint.listener)
        if uses_sasl(endpoint):
            mechanisms_of(config, endpoint.listener, Logins(is_trial=True))
    except InvalidSettingError as error:
        raise StartupError(f"listener {endpoint}: {error}") from error
