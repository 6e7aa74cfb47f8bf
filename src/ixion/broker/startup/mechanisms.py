"""The SASL mechanisms of a listener, from the broker's settings, with the credentials that each checks against."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.security.credentials import ScramCredentials
from ixion.broker.security.tokens import Tokens
from ixion.config import security_settings as security
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError

if TYPE_CHECKING:
    from ixion.broker.security.gate import Gate, MakeExchange
    from ixion.broker.security.key_set import KeySet
    from ixion.broker.startup.certificates import Certificates
    from ixion.language.sasl.scram import ScramCredential

SUPPORTED: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
NO_KERBEROS: Final = f"{', '.join(SUPPORTED)}; GSSAPI (Kerberos), Kafka's default, is not supported"
INSTALL: Final = "pip install cryptography pyjwt"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Logins:
    """Credentials and keys that all listeners of a broker share."""

    credentials: ScramCredentials = field(default_factory=ScramCredentials)
    tokens: Tokens = field(default_factory=lambda: Tokens(None, now_ms))
    key_sets: list[KeySet] = field(default_factory=list)  # of OAUTHBEARER; refreshed as needed, checked once a second
    certificates: list[Certificates] = field(default_factory=list)  # of listeners with TLS
    is_trial: bool = False  # only check the settings: ask no other machine


def gate_of(config: BrokerConfig, listener: str, logins: Logins) -> Callable[[], Gate]:
    from ixion.broker.security.gate import Gate

    mechanisms = mechanisms_of(config, listener, logins)
    lifetime_ms = config.of_listener(listener, security.CONNECTIONS_MAX_REAUTH_MS)
    return partial(Gate, mechanisms, lifetime_ms, lambda: time.monotonic_ns() // 1_000_000, now_ms)


def mechanisms_of(config: BrokerConfig, listener: str, logins: Logins) -> dict[str, MakeExchange]:
    """InvalidSettingError for an unknown mechanism, or one without credentials to check against."""
    # Imported only by a broker that authenticates.
    from ixion.language.sasl.plain import PlainExchange
    from ixion.language.sasl.scram import MECHANISMS, ScramExchange

    setting = security.SASL_ENABLED_MECHANISMS
    made: dict[str, MakeExchange] = {}
    for mechanism in config.of_listener(listener, setting):
        if mechanism in MECHANISMS:
            find: Callable[[str], ScramCredential | None] = partial(_find, logins.credentials, mechanism)
            find_token = partial(logins.tokens.login, mechanism)
            prepare = partial(logins.tokens.prepare, mechanism)
            examples = partial(logins.credentials.all, mechanism)
            made[mechanism] = partial(
                ScramExchange, mechanism, find, find_token=find_token, prepare_token=prepare, examples=examples
            )
        elif mechanism == "PLAIN":
            made[mechanism] = partial(PlainExchange, _plain_users(config, listener))
        elif mechanism == "OAUTHBEARER":
            made[mechanism] = _bearer_exchange(config, listener, logins)
        elif mechanism == "GSSAPI":
            raise InvalidSettingError(setting.name, mechanism, f"one or more of {NO_KERBEROS}")
        else:
            raise InvalidSettingError(setting.name, mechanism, f"one or more of {', '.join(SUPPORTED)}")
    if not made:
        raise InvalidSettingError(setting.name, "", f"one or more of {', '.join(SUPPORTED)}")
    return made


def _find(credentials: ScramCredentials, mechanism: str, user: str) -> ScramCredential | None:
    return credentials.find(user, mechanism)


def _plain_users(config: BrokerConfig, listener: str) -> dict[str, str]:
    from ixion.broker.security.jaas import plain_users

    name = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
    text = config.jaas_of(listener, "PLAIN")
    if text is None:
        raise InvalidSettingError(name, "", "set, with the users and their passwords")
    try:
        return plain_users(text)
    except ValueError as error:
        raise InvalidSettingError(name, "[hidden]", f"a login module with users: {error}") from None


def _bearer_exchange(config: BrokerConfig, listener: str, logins: Logins) -> MakeExchange:
    """OAUTHBEARER needs keys: without a check of its signature, any token would let a client in."""
    from ixion.broker.security.bearer_tokens import BearerTokens, Expected, check_installed
    from ixion.broker.security.key_set import KeySet, path_of
    from ixion.language.sasl.oauthbearer import OAuthBearerExchange

    try:
        check_installed()
    except ImportError as error:
        setting = security.SASL_ENABLED_MECHANISMS
        raise InvalidSettingError(setting.name, "OAUTHBEARER", f"without it, or: {INSTALL} ({error})") from None
    where = security.SASL_OAUTHBEARER_JWKS_ENDPOINT_URL
    url = config.of_listener(listener, where)
    if not url:
        raise InvalidSettingError(where.name, "", "set, to the keys that tokens are signed with (https: or file:)")
    refresh_ms = config.of_listener(listener, security.SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS)
    try:
        keys = KeySet(url, refresh_ms / 1_000, late=logins.is_trial and path_of(url) is None)
    except ValueError as error:
        raise InvalidSettingError(where.name, url, f"a set of keys ({error})") from None
    logins.key_sets.append(keys)
    expected = Expected(
        issuer=config.of_listener(listener, security.SASL_OAUTHBEARER_EXPECTED_ISSUER) or None,
        audience=config.of_listener(listener, security.SASL_OAUTHBEARER_EXPECTED_AUDIENCE),
        skew_s=config.of_listener(listener, security.SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS),
        user_claim=config.of_listener(listener, security.SASL_OAUTHBEARER_SUB_CLAIM_NAME),
        scope_claim=config.of_listener(listener, security.SASL_OAUTHBEARER_SCOPE_CLAIM_NAME),
    )
    return partial(OAuthBearerExchange, BearerTokens(keys, expected).validate)
