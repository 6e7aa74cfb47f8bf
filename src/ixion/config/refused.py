"""Settings that protect an Apache Kafka and that ixion does not have: a broker with one of them does not start.

A warning is easily overlooked, and the broker would run without the protection that its file asks for. A value that
asks for nothing (Kafka's default, mostly) is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ixion.config.errors import InvalidSettingError

PREFIX: Final = "listener.name."


class Refusal(NamedTuple):
    accepted: tuple[str, ...]  # values that ask for nothing
    reason: str
    is_secret: bool = False


_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer."
_NO_CLASSES: Final = "left out: ixion loads no classes"
_NO_KERBEROS: Final = "left out: ixion has no GSSAPI"
_BY_FILE: Final = "left out: a broker logs in with the token in the file of sasl.oauthbearer.token.endpoint.url"

REFUSED: Final[Mapping[str, Refusal]] = {
    "principal.builder.class": Refusal(
        ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",),
        "left out: ixion has Kafka's default, with ssl.principal.mapping.rules",
    ),
    "create.topic.policy.class.name": Refusal((), _NO_CLASSES),
    "alter.config.policy.class.name": Refusal((), _NO_CLASSES),
    "client.quota.callback.class": Refusal((), _NO_CLASSES),
    "security.providers": Refusal((), _NO_CLASSES),
    "config.providers": Refusal((), "left out: ${…} in values is not replaced"),
    "early.start.listeners": Refusal((), "left out: no listener starts before the authorizer"),
    "sasl.jaas.config": Refusal((), "set as listener.name.LISTENER.MECHANISM.sasl.jaas.config", is_secret=True),
    # The handlers that Kafka itself has for OAUTHBEARER: we do what they do.
    "sasl.server.callback.handler.class": Refusal(
        (f"{_OAUTH}OAuthBearerValidatorCallbackHandler", f"{_OAUTH}secured.OAuthBearerValidatorCallbackHandler"),
        _NO_CLASSES,
    ),
    "sasl.login.callback.handler.class": Refusal(
        (f"{_OAUTH}OAuthBearerLoginCallbackHandler", f"{_OAUTH}secured.OAuthBearerLoginCallbackHandler"), _NO_CLASSES
    ),
    "sasl.client.callback.handler.class": Refusal((), _NO_CLASSES),
    "sasl.login.class": Refusal((), _NO_CLASSES),
    "sasl.kerberos.service.name": Refusal((), _NO_KERBEROS),
    "sasl.kerberos.kinit.cmd": Refusal(("/usr/bin/kinit",), _NO_KERBEROS),
    "sasl.kerberos.principal.to.local.rules": Refusal(("DEFAULT",), _NO_KERBEROS),
    "sasl.kerberos.ticket.renew.window.factor": Refusal(("0.8",), _NO_KERBEROS),
    "sasl.kerberos.ticket.renew.jitter": Refusal(("0.05",), _NO_KERBEROS),
    "sasl.kerberos.min.time.before.relogin": Refusal(("60000",), _NO_KERBEROS),
    "sasl.oauthbearer.header.urlencode": Refusal(("false",), _BY_FILE),
    "sasl.oauthbearer.jwt.retriever.class": Refusal((f"{_OAUTH}DefaultJwtRetriever",), _NO_CLASSES),
    "sasl.oauthbearer.jwt.validator.class": Refusal(
        (f"{_OAUTH}DefaultJwtValidator", f"{_OAUTH}BrokerJwtValidator"), _NO_CLASSES
    ),
    "sasl.oauthbearer.scope": Refusal((), _BY_FILE),
    "sasl.oauthbearer.client.credentials.client.id": Refusal((), _BY_FILE),
    "sasl.oauthbearer.client.credentials.client.secret": Refusal((), _BY_FILE, is_secret=True),
    "sasl.oauthbearer.assertion.algorithm": Refusal(("RS256",), _BY_FILE),
    "sasl.oauthbearer.assertion.claim.aud": Refusal((), _BY_FILE),
    "sasl.oauthbearer.assertion.claim.exp.seconds": Refusal(("300",), _BY_FILE),
    "sasl.oauthbearer.assertion.claim.iss": Refusal((), _BY_FILE),
    "sasl.oauthbearer.assertion.claim.jti.include": Refusal(("false",), _BY_FILE),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": Refusal(("60",), _BY_FILE),
    "sasl.oauthbearer.assertion.claim.sub": Refusal((), _BY_FILE),
    "sasl.oauthbearer.assertion.file": Refusal((), _BY_FILE),
    "sasl.oauthbearer.assertion.private.key.file": Refusal((), _BY_FILE),
    "sasl.oauthbearer.assertion.private.key.passphrase": Refusal((), _BY_FILE, is_secret=True),
    "sasl.oauthbearer.assertion.template.file": Refusal((), _BY_FILE),
}


def check_not_refused(name: str, value: str, where: str) -> None:
    """InvalidSettingError if a setting, of all listeners or of one, asks for a protection that ixion does not have."""
    refusal = REFUSED.get(name) or _of_listener(name)
    text = value.strip()
    if refusal is not None and text and text not in refusal.accepted:
        shown = "[hidden]" if refusal.is_secret else value
        raise InvalidSettingError(name, shown, refusal.reason, where)


def _of_listener(name: str) -> Refusal | None:
    """Of `listener.name.NAME.SETTING` and `listener.name.NAME.MECHANISM.SETTING`."""
    if not name.startswith(PREFIX):
        return None
    rest = name.removeprefix(PREFIX).partition(".")[2]
    if rest.endswith(".sasl.jaas.config"):
        return None
    return REFUSED.get(rest) or REFUSED.get(rest.partition(".")[2])
