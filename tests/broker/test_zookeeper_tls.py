"""A broker whose ZooKeeper is reached over TLS, by the settings that Kafka has for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from devtools import parts
from devtools.zookeeper import RealZooKeeper
from ixion.broker.log.files import Files
from ixion.broker.metadata.errors import AccessDeniedError
from ixion.broker.metadata.zookeeper.session import open_session
from ixion.broker.security.zookeeper_tls import make_context
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.errors import StartupError
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from tests.broker.support import broker_with, run
from tests.metadata.engines import end_from_outside
from tests.security.certificates import Authority
from tests.security.test_tls_settings import pkcs12


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def own(authority: Authority) -> Path:
    return authority.sign("own", "/CN=own", password="secret")


def broker_on(connect: str, path: Path, authority: Authority, own: Path, **settings: str) -> Broker:
    given = {
        "zookeeper_connect": connect,
        "zookeeper_connection_timeout_ms": "20000",
        "broker_id": "1",
        "zookeeper_ssl_client_enable": "true",
        "zookeeper_ssl_truststore_location": str(authority.certificate),
        "zookeeper_ssl_keystore_location": str(own),
        "zookeeper_ssl_keystore_password": "secret",
    }
    return broker_with(Files(), path, **{**given, **settings})


def test_a_broker_registers_over_tls_and_again_when_its_session_has_expired(
    authority: Authority, own: Path, tmp_path: Path
) -> None:
    parts.need("zookeeper-3.9.4")
    server = authority.sign("server", "/CN=server")

    async def work() -> None:
        broker = broker_on(f"{zookeeper.secure_connect}/tls", tmp_path / "d", authority, own)
        await broker.start()
        renewal = broker.parts.renewal
        assert renewal is not None
        end_from_outside(broker.parts.session, zookeeper.connect)  # type: ignore[arg-type]
        while renewal.renewed == 0:
            await asyncio.sleep(0.01)
        assert await broker.parts.session.children("/brokers/ids") == ["1"]
        await broker.stop(drain_ms=100)

    with RealZooKeeper(tmp_path / "zookeeper", tls=(server, authority.certificate)) as zookeeper:
        run(work)


def test_nodes_belong_to_the_brokers_if_zookeeper_set_acl_is_true(
    authority: Authority, own: Path, tmp_path: Path
) -> None:
    parts.need("zookeeper-3.9.4")
    server = authority.sign("server", "/CN=server")

    async def work() -> None:
        connect = f"{zookeeper.secure_connect}/acl"
        broker = broker_on(connect, tmp_path / "d", authority, own, zookeeper_set_acl="true")
        await broker.start()
        stranger = await open_session(f"{zookeeper.connect}/acl", 10_000)
        for path in ("/controller", "/brokers/ids/1", "/config/topics", "/cluster/id"):
            assert isinstance((await stranger.get(path)).data, bytes)
            with pytest.raises(AccessDeniedError):
                await stranger.set(path, b"forged")
        with pytest.raises(AccessDeniedError):
            await stranger.create("/brokers/topics/forged", b"")
        with pytest.raises(AccessDeniedError):
            await stranger.get("/config/users")
        await stranger.close()
        await broker.stop(drain_ms=100)

    with RealZooKeeper(tmp_path / "zookeeper", tls=(server, authority.certificate)) as zookeeper:
        run(work)


def test_zookeeper_set_acl_needs_a_certificate(tmp_path: Path) -> None:
    async def work() -> None:
        connect = {"zookeeper_connect": "127.0.0.1:1", "zookeeper_set_acl": "true"}
        for more in ({}, {"zookeeper_ssl_client_enable": "true"}):
            with pytest.raises(StartupError, match=r"zookeeper\.set\.acl=true needs a certificate"):
                await broker_with(Files(), tmp_path / "d", **connect, **more).start()

    run(work)


def test_a_start_ends_with_one_line_if_the_certificate_of_zookeeper_is_invalid(
    authority: Authority, own: Path, tmp_path: Path
) -> None:
    parts.need("zookeeper-3.9.4")
    stranger = Authority(tmp_path, "stranger").sign("server", "/CN=server")

    async def work() -> None:
        connect, limit = zookeeper.secure_connect, {"zookeeper_connection_timeout_ms": "1500"}
        broker = broker_on(connect, tmp_path / "d", authority, own, **limit)
        with pytest.raises(StartupError, match="its certificate is not accepted: unable to get local issuer") as caught:
            await broker.start()
        assert "\n" not in str(caught.value)
        broker = broker_on(connect, tmp_path / "d", authority, own, zookeeper_ssl_keystore_password="wrong")
        with pytest.raises(StartupError, match=r"zookeeper\.ssl\.keystore\.location"):
            await broker.start()
        assert not (tmp_path / "d").exists(), "a start that fails leaves nothing behind"

    with RealZooKeeper(tmp_path / "zookeeper", tls=(stranger, authority.certificate)) as zookeeper:
        run(work)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ssl.keystore.location", "/nowhere.pem", "a file that can be read"),
        ("ssl.truststore.location", "/nowhere.jks", r"zookeeper\.ssl\.truststore\.type.*PEM or PKCS12"),
        ("ssl.truststore.type", "BCFKS", "PEM or PKCS12"),
        ("ssl.protocol", "SSLv3", "one of TLSv1.2, TLSv1.3, TLS"),
        ("ssl.cipher.suites", "ROT13", "names OpenSSL has"),
        ("ssl.endpoint.identification.algorithm", "LDAPS", "HTTPS, or empty"),
        ("ssl.crl.enable", "true", "revoked certificates are not looked up"),
        ("ssl.ocsp.enable", "true", "revoked certificates are not looked up"),
    ],
)
def test_settings_that_cannot_be_used_are_named(authority: Authority, name: str, value: str, said: str) -> None:
    given = {"zookeeper.ssl.truststore.location": str(authority.certificate), f"zookeeper.{name}": value}
    with pytest.raises(InvalidSettingError, match=said) as caught:
        make_context(BrokerConfig(given))
    assert "zookeeper.ssl." in str(caught.value)


def test_versions_and_authorities_of_the_system_unless_set() -> None:
    plain = make_context(BrokerConfig({}))
    assert plain.check_hostname
    assert (plain.minimum_version.name, plain.maximum_version.name) == ("TLSv1_2", "TLSv1_2")
    both = make_context(BrokerConfig({"zookeeper.ssl.protocol": "TLS"}))
    assert (both.minimum_version.name, both.maximum_version.name) == ("TLSv1_2", "TLSv1_3")
    newest = make_context(BrokerConfig({"zookeeper.ssl.enabled.protocols": "TLSv1.3"}))
    assert newest.minimum_version.name == "TLSv1_3"


def test_stores_of_the_kind_that_their_names_say(authority: Authority, tmp_path: Path) -> None:
    plain = authority.sign("plain", "/CN=plain")
    own = pkcs12(plain, tmp_path / "own.p12", "secret")
    trusted = pkcs12(authority.certificate, tmp_path / "trusted.pfx", "secret", "-nokeys")
    given = {"truststore.location": str(trusted), "truststore.password": "secret", "keystore.location": str(own)}
    config = {f"zookeeper.ssl.{name}": value for name, value in given.items()}
    context = make_context(BrokerConfig({**config, "zookeeper.ssl.keystore.password": "secret"}))
    assert ["authority" in str(found["subject"]) for found in context.get_ca_certs()] == [True]
    with pytest.raises(InvalidSettingError, match=r"zookeeper\.ssl\.keystore\.location"):
        make_context(BrokerConfig(config))
