"""TLS by Kafka's settings: key stores, what is refused, users from subjects, and certificates that change."""

from __future__ import annotations

import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools import parts
from ixion.broker.security.own_certificate import names_of
from ixion.broker.security.principal_rules import NoRuleError, PrincipalRules
from ixion.broker.security.tls import context_of
from ixion.broker.startup.listeners import principal_rules_of
from ixion.clients import Admin
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.table import BROKER_SETTINGS
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages import k44_incremental_alter_configs as k44
from ixion.testing import Broker
from tests.apis.asking import Asking
from tests.security.certificates import Authority

# Every ssl.* setting that a broker of Apache Kafka 3.9 or 4.3 documents.
DOCUMENTED = (
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
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(place: Path) -> Authority:
    return Authority(place)


@pytest.fixture(scope="module")
def pem(authority: Authority) -> Path:
    return authority.sign("broker", "/O=ixion/CN=broker")


def pkcs12(pem: Path, to: Path, password: str, *more: str) -> Path:
    openssl = parts.need("openssl")
    command = [openssl, "pkcs12", "-export", "-in", str(pem), "-out", str(to), "-passout", f"pass:{password}", *more]
    subprocess.run(command, check=True, capture_output=True)
    return to


def context(**settings: object) -> ssl.SSLContext:
    given = {f"ssl.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    return context_of(BrokerConfig(given), "SSL")


def test_every_setting_of_kafka_is_known() -> None:
    assert [name for name in DOCUMENTED if name not in BROKER_SETTINGS] == []


def test_a_pkcs12_store_has_what_the_pem_file_has(place: Path, authority: Authority, pem: Path) -> None:
    store = pkcs12(pem, place / "broker.p12", "secret", "-certfile", str(authority.certificate))
    made = context(keystore_type="PKCS12", keystore_location=store, keystore_password="secret")
    assert names_of(made) == names_of(context(keystore_location=pem))
    trusted = pkcs12(authority.certificate, place / "ca.p12", "secret", "-nokeys")
    both = context(
        keystore_location=pem,
        truststore_type="pkcs12",
        truststore_location=trusted,
        truststore_password="secret",
        client_auth="required",
    )
    assert (
        both.get_ca_certs() == context(keystore_location=pem, truststore_location=authority.certificate).get_ca_certs()
    )


def test_stores_that_cannot_be_used(
    place: Path, authority: Authority, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = pkcs12(pem, place / "other.p12", "secret")
    keyless = pkcs12(authority.certificate, place / "keyless.p12", "secret", "-nokeys")
    for settings, reason in (
        ({"keystore_type": "JKS", "keystore_location": store}, "keytool -importkeystore -deststoretype PKCS12"),
        ({"keystore_type": "BCFKS", "keystore_location": store}, "must be converted"),
        ({"keystore_location": store}, "openssl pkcs12 -in"),  # a .p12 for a PEM file
        (
            {"keystore_type": "PKCS12", "keystore_location": store, "keystore_password": "wrong"},
            "opens with its password",
        ),
        ({"keystore_type": "PKCS12", "keystore_location": pem, "keystore_password": "x"}, "must be converted"),
        ({"keystore_type": "PKCS12", "keystore_location": keyless, "keystore_password": "secret"}, "private key"),
        ({"keystore_type": "PKCS12", "keystore_location": place / "none"}, "No such file"),
        ({"keystore_location": pem, "truststore_type": "JKS", "truststore_location": store}, "must be converted"),
    ):
        with pytest.raises(InvalidSettingError, match=re.escape(reason)) as caught:
            context(**settings)
        assert "wrong" not in str(caught.value)
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(InvalidSettingError, match=re.escape("pip install cryptography, or openssl pkcs12")):
        context(keystore_type="PKCS12", keystore_location=store, keystore_password="secret")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("provider", "BC"),
        ("engine_factory_class", "org.example.Factory"),
        ("keymanager_algorithm", "X"),
        ("trustmanager_algorithm", "X"),
        ("secure_random_implementation", "X"),
        ("protocol", "SSLv3"),
        ("cipher_suites", "NONSENSE"),
    ],
)
def test_settings_that_choose_parts_of_java_are_refused(pem: Path, name: str, value: str) -> None:
    with pytest.raises(InvalidSettingError):
        context(keystore_location=pem, **{name: value})
    context(keystore_location=pem, protocol="TLSv1.2", keymanager_algorithm="SunX509")


def test_users_from_subjects() -> None:
    rules = PrincipalRules(
        r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?),OU=(\w+)$/$1@$2/L,RULE:^O=a\/b.*$/x$9/U,DEFAULT"
    )
    assert rules.name_of("CN=kafka,OU=ServiceUsers,O=org") == "kafka"
    assert rules.name_of("CN=Alice,OU=Team") == "alice@team"
    assert rules.name_of("O=a/b,C=x") == "X$9"
    assert rules.name_of("CN=other,O=org") == "CN=other,O=org"
    with pytest.raises(NoRuleError):
        PrincipalRules("RULE:^CN=a$/a/").name_of("CN=b")
    with pytest.raises(NoRuleError):
        PrincipalRules("RULE:.*/a/").name_of("x" * 10_000)


@pytest.mark.parametrize(
    "text", ["RULE:a", "RULE:(/a/", "default", "RULE:a/b/X", "DEFAULT,RULE", "RULE:a/b/L RULE:c/d/"]
)
def test_rules_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidSettingError, match="RULE:pattern/user/"):
        principal_rules_of(BrokerConfig({"ssl.principal.mapping.rules": text}), "SSL")


@given(st.text(max_size=60))
def test_any_text_is_rules_or_refused(text: str) -> None:
    try:
        rules = PrincipalRules(text)
    except ValueError:
        return
    try:
        assert isinstance(rules.name_of("CN=a,O=b"), str)
    except NoRuleError:
        pass


@pytest.fixture
def broker(authority: Authority, pem: Path) -> Iterator[Broker]:
    with Broker(
        {
            "broker.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.name.outside.ssl.keystore.location": pem,
            "listener.name.outside.ssl.truststore.location": authority.certificate,
            "listener.name.outside.ssl.client.auth": "required",
            "listener.name.outside.ssl.principal.mapping.rules": "RULE:^CN=(ali.*?),.*$/$1/",
        }
    ) as running:
        yield running


def outside(broker: Broker) -> tuple[str, int]:
    async def port(real: object) -> int:
        return int(real.parts.server.port("OUTSIDE"))  # type: ignore[attr-defined]

    return "127.0.0.1", broker.call(port)


def test_a_rule_names_the_user_and_others_are_refused(broker: Broker, authority: Authority) -> None:
    host, port = outside(broker)

    def admin(name: str, subject: str) -> Admin:
        return Admin(
            f"{host}:{port}",
            security_protocol="SSL",
            ssl_truststore_location=str(authority.certificate),
            ssl_keystore_location=str(authority.sign(name, subject)),
            default_api_timeout_ms=3_000,
        )

    async def principals(real: object) -> set[str]:
        processors = real.parts.server._processors()  # type: ignore[attr-defined]
        return {each.principal for one in processors for each in one.connections.values()}

    with admin("alice", "/O=org/CN=alice") as alice:
        alice.describe_cluster()
        assert "User:alice" in broker.call(principals)
    with admin("bob", "/O=org/CN=bob") as bob, pytest.raises(Exception, match=r"\w"):
        bob.describe_cluster()


def serial_of(broker: Broker, authority: Authority) -> int:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(authority.sign("asking", "/O=org/CN=alice"))
    import socket

    with (
        socket.create_connection(outside(broker), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        found = secured.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


def test_certificates_are_replaced_by_settings(broker: Broker, authority: Authority, pem: Path) -> None:
    """As `kafka-configs --entity-type brokers --entity-name 1 --alter --add-config …` does (KIP-226)."""
    name = "listener.name.outside.ssl.keystore.location"

    def alter(setting: str, value: object, broker_id: str = "1") -> ErrorCode:
        config = k44.AlterableConfig(name=setting, config_operation=0, value=str(value))
        resource = k44.AlterConfigsResource(resource_type=4, resource_name=broker_id, configs=(config,))
        with Asking(broker.bootstrap) as asking:
            request = k44.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
            return ErrorCode(asking.ask(request, k44.IncrementalAlterConfigsResponse).responses[0].error_code)

    before = serial_of(broker, authority)
    assert serial_of(broker, authority) == before
    refused = ErrorCode.INVALID_REQUEST
    assert alter(name, "/none/such.pem") is refused
    assert alter(name, authority.sign("named", "/O=ixion/CN=other")) is refused  # another subject
    assert alter(name, authority.sign("moved", "/O=ixion/CN=broker", hosts="IP:127.0.0.1")) is refused  # a lost name
    assert alter(name, authority.sign("late", "/O=ixion/CN=broker", days=-1)) is refused  # expired
    assert alter(name, authority.sign("all", "/O=ixion/CN=broker"), "") is refused  # a file of one broker
    assert alter("listener.name.outside.sasl.enabled.mechanisms", "PLAIN") is refused  # fixed at the start
    assert alter("listener.name.outside.plain.sasl.jaas.config", "x") is refused
    assert serial_of(broker, authority) == before
    assert alter(name, authority.sign("next", "/O=ixion/CN=broker")) is ErrorCode.NONE
    after = serial_of(broker, authority)
    assert after != before
    assert alter(name, pem) is ErrorCode.NONE
    assert serial_of(broker, authority) == before
