"""Every setting of Apache Kafka 3.9 and 4.3 that concerns security works, or a broker with it does not start.

The names are those of Kafka's own classes: BrokerSecurityConfigs, SslConfigs, SaslConfigs, PasswordEncoderConfigs,
DelegationTokenManagerConfigs, ZkConfigs, ServerConfigs.
"""

from __future__ import annotations

import pytest

from ixion.config.errors import InvalidSettingError
from ixion.config.ineffective import WITHOUT_EFFECT
from ixion.config.refused import REFUSED
from ixion.config.sources import load
from ixion.config.table import BROKER_SETTINGS

IN_BOTH = (
    "allow.everyone.if.no.acl.found",
    "alter.config.policy.class.name",
    "authorizer.class.name",
    "client.quota.callback.class",
    "config.providers",
    "connection.failed.authentication.delay.ms",
    "connections.max.reauth.ms",
    "create.topic.policy.class.name",
    "delegation.token.expiry.check.interval.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.max.lifetime.ms",
    "delegation.token.secret.key",
    "early.start.listeners",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "principal.builder.class",
    "sasl.client.callback.handler.class",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.server.callback.handler.class",
    "sasl.server.max.receive.size",
    "security.inter.broker.protocol",
    "security.providers",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.key.password",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "super.users",
)
ONLY_3_9 = (
    "control.plane.listener.name",
    "delegation.token.master.key",
    "password.encoder.cipher.algorithm",
    "password.encoder.iterations",
    "password.encoder.key.length",
    "password.encoder.keyfactory.algorithm",
    "password.encoder.old.secret",
    "password.encoder.secret",
    "zookeeper.set.acl",
    "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.client.enable",
    "zookeeper.ssl.crl.enable",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.endpoint.identification.algorithm",
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.ocsp.enable",
    "zookeeper.ssl.protocol",
    "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
)
ONLY_4_3 = (
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope",
)
# How often a login is tried again, which protects nothing; and KRaft's listeners, which ixion does not have.
ONLY_TIMES = (
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "controller.listener.names",
    "sasl.mechanism.controller.protocol",
)


@pytest.mark.parametrize("name", [*IN_BOTH, *ONLY_3_9, *ONLY_4_3])
def test_it_works_or_the_broker_does_not_start(name: str) -> None:
    if name in BROKER_SETTINGS:
        assert name not in REFUSED
        assert name not in WITHOUT_EFFECT, "a protection without effect"
        return
    with pytest.raises(InvalidSettingError) as refused:
        load(assignments=[f"{name}=org.example.Mine"])
    assert refused.value.name == name
    for harmless in ("", *REFUSED[name].accepted):
        assert load(assignments=[f"{name}={harmless}"]).warnings


@pytest.mark.parametrize("prefix", ["listener.name.external.", "listener.name.external.scram-sha-512."])
@pytest.mark.parametrize("name", ["principal.builder.class", "sasl.server.callback.handler.class", "sasl.login.class"])
def test_for_one_listener_too(prefix: str, name: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"no classes|has Kafka's default"):
        load(assignments=[f"{prefix}{name}=org.example.Mine"])


@pytest.mark.parametrize("name", ONLY_TIMES)
def test_others_only_warn(name: str) -> None:
    assert name not in BROKER_SETTINGS
    assert any(name in warning for warning in load(assignments=[f"{name}=1"]).warnings)


def test_secrets_are_not_shown() -> None:
    for name, refusal in REFUSED.items():
        if refusal.is_secret:
            with pytest.raises(InvalidSettingError) as refused:
                load(assignments=[f"{name}=hunter2"])
            assert "hunter2" not in str(refused.value)


def test_the_jaas_settings_of_a_listener_are_not_refused() -> None:
    load(assignments=["listener.name.external.plain.sasl.jaas.config=x"])
