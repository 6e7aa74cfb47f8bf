"""Kafka's Java clients 4.3 over every mechanism and listener: the right way in, and the wrong ones. One JVM for all."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.clients import Admin
from tests.security.identity_provider import ISSUER, Provider
from tests.security.secured import AGAIN, Secured, count_logins

LOGIN = "org.apache.kafka.common.security."
OAUTH = f"{LOGIN}oauthbearer."
REFUSED = "SaslAuthenticationException"


@pytest.fixture
def provider() -> Provider:
    return Provider()


def jaas(mechanism: str, user: str, password: str, more: str = "") -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{LOGIN}{module} required username="{user}" password="{password}"{more};',
    }


def bearer(file: Path, token: str) -> dict[str, str]:
    file.write_text(token)
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH}OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": f"{OAUTH}OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
    }


def test_java_clients(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    classpath = need("kafka-4.3.0")
    secured = Secured(
        tmp_path,
        {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": provider.write(tmp_path / "keys.json"),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "delegation.token.secret.key": "secret",
            "listener.name.sasl_plaintext.connections.max.reauth.ms": "500",
        },
    )
    logins = count_logins(monkeypatch)
    other = secured.authority.sign("elsewhere", "/CN=elsewhere", hosts="DNS:elsewhere.example")
    secured.broker._settings["listener.name.ssl.ssl.keystore.location"] = str(other)
    trusting = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secured.authority.certificate)}
    strangers = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secured.stranger.certificate)}
    with secured.broker as broker:
        broker.create_topic("t")
        for mechanism in (1, 2):
            secured.add_user("sue", "s-secret", mechanism)
        with Admin(
            secured.address("SASL_PLAINTEXT"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_username="sue",
            sasl_password="s-secret",
        ) as sue:
            token, gone = sue.create_delegation_token(), sue.create_delegation_token()
            sue.expire_delegation_token(gone.hmac)

        def by_token(token_id: str, hmac: bytes) -> dict[str, str]:
            return jaas("SCRAM-SHA-256", token_id, base64.b64encode(hmac).decode(), ' tokenauth="true"')

        good = {
            "plain": ("SASL_PLAINTEXT", jaas("PLAIN", "alice", "a-secret")),
            "plain-tls": ("SASL_SSL", jaas("PLAIN", "alice", "a-secret")),
            "scram-256": ("SASL_PLAINTEXT", jaas("SCRAM-SHA-256", "sue", "s-secret")),
            "scram-512-tls": ("SASL_SSL", jaas("SCRAM-SHA-512", "sue", "s-secret")),
            "delegation": ("SASL_SSL", by_token(token.token_id, token.hmac)),
            "oauth-tls": ("SASL_SSL", bearer(tmp_path / "good.jwt", provider.token())),
            "certificate": ("MUTUAL", {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(secured.client)}),
            "again-plain": ("SASL_PLAINTEXT", jaas("PLAIN", "bob", "b-secret")),
            "any-host": ("SSL", {"ssl.endpoint.identification.algorithm": ""}),
        }
        bad = {
            "plain-wrong": ("SASL_PLAINTEXT", jaas("PLAIN", "alice", "wrong"), REFUSED),
            "scram-wrong": ("SASL_SSL", jaas("SCRAM-SHA-256", "sue", "wrong"), REFUSED),
            "scram-nobody": ("SASL_SSL", jaas("SCRAM-SHA-512", "nobody", "x"), REFUSED),
            "delegation-revoked": ("SASL_SSL", by_token(gone.token_id, gone.hmac), REFUSED),
            "oauth-stranger": ("SASL_SSL", bearer(tmp_path / "bad.jwt", Provider().token()), REFUSED),
            "other-authority": ("SASL_SSL", jaas("PLAIN", "alice", "a-secret") | strangers, "SslAuthentication"),
            "other-host": ("SSL", {}, "SslAuthentication"),
            "foreign-certificate": (
                "MUTUAL",
                # In TLS 1.3 the client is done before the broker refuses it; an alert tells it why.
                {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(secured.foreign), "max.block.ms": "20000"},
                "SslAuthentication",
            ),
        }
        files = []
        every_case = good | {name: (listener, settings) for name, (listener, settings, _) in bad.items()}
        for name, (listener, settings) in every_case.items():
            protocol = "SSL" if listener == "MUTUAL" else listener
            every = {"bootstrap.servers": secured.address(listener), "security.protocol": protocol}
            every |= (trusting if "SSL" in protocol else {}) | settings
            place = tmp_path / f"{name}.properties"
            place.write_text("".join(f"{key}={value}\n" for key, value in every.items()))
            files.append(str(place))
        classes = compile_java(Path(__file__).parent / "SecuredClients.java", classpath)
        tokens = ",".join((tmp_path / f"{name}.jwt").as_uri() for name in ("good", "bad"))
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens}"
        said = run_java("SecuredClients", *files, classpath=f"{classes}:{classpath}", options=[allowed])
    found = {line.split("\t")[1]: line.split("\t")[2] for line in said.splitlines() if line.startswith("case\t")}
    assert {name: found[name] for name in good} == dict.fromkeys(good, "ok")
    for name, (_, _, expected) in bad.items():
        assert found[name] != "ok", name
        assert expected in found[name], (name, found[name])
    assert "secret" not in said
    assert logins["User:bob" + AGAIN] > 0, "its session is over before it has sent all"
