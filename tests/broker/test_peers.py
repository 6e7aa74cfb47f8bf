"""Connections to other brokers follow what changes at run time: certificates, and the file with the token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.startup.peers import check_peers, connect_to
from ixion.clients.address import Address
from ixion.clients.channel import Channel
from ixion.clients.faults import AuthenticationError
from ixion.config.broker import BrokerConfig
from ixion.config.dynamic import DynamicConfig, Level
from ixion.config.errors import InvalidSettingError
from ixion.language.protocol.messages.k03_metadata import MetadataRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.security.identity_provider import Provider
from tests.security.secured import Secured

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    with made.broker:
        yield made


def address_of(bootstrap: str) -> Address:
    host, _, port = bootstrap.rpartition(":")
    return Address(host, int(port))


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work(), 60))


async def ask(channel: Channel) -> None:
    await channel.ask(ApiKey.METADATA, 12, MetadataRequest(topics=()))


def test_a_certificate_that_is_changed_reaches_new_connections(secured: Secured) -> None:
    """KIP-226 holds for the broker as a client, too."""
    other = secured.authority.sign("other", "/O=ixion/CN=other")
    config = DynamicConfig(
        {
            "listeners": "SSL://127.0.0.1:0",
            "security.inter.broker.protocol": "SSL",
            "ssl.keystore.location": str(secured.client),
            "ssl.truststore.location": str(secured.authority.certificate),
        }
    )
    connect = connect_to(config, "SSL")

    async def principals(real: Any) -> set[str]:
        every = [each for one in real.parts.server._processors() for each in one.connections.values()]
        return {each.principal for each in every if each.listener == "MUTUAL"}

    async def work() -> None:
        before = connect(address_of(secured.address("MUTUAL")), "broker-7", 30.0)
        await ask(before)
        assert secured.broker.call(principals) == {"User:CN=client,OU=team,O=ixion"}
        config.change(Level.THIS_BROKER, {"listener.name.ssl.ssl.keystore.location": str(other)})
        after = connect(address_of(secured.address("MUTUAL")), "broker-7", 30.0)
        await ask(after)
        await ask(before)  # it goes on
        assert secured.broker.call(principals) == {"User:CN=client,OU=team,O=ixion", "User:CN=other,O=ixion"}
        with pytest.raises(InvalidSettingError, match="brokers with the same trust store believe"):
            config.change(Level.THIS_BROKER, {"ssl.keystore.location": str(secured.foreign)})
        before.close()
        after.close()

    run(work)


def test_the_token_of_this_broker_is_read_for_every_login(tmp_path: Path) -> None:
    provider = Provider()
    file = tmp_path / "broker.jwt"
    file.write_text(provider.token(sub="broker") + "\n")
    given = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.write(tmp_path / "keys.json"),
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{MODULE} ;",
        "connection.failed.authentication.delay.ms": "0",
    }
    check_peers(BrokerConfig(given))
    with Broker(given) as broker:
        connect = connect_to(DynamicConfig(given), "SASL_PLAINTEXT")

        async def login() -> None:
            channel = connect(address_of(broker.bootstrap), "broker-7", 30.0)
            try:
                await ask(channel)
            finally:
                channel.close()

        async def work() -> None:
            await login()
            file.write_text(provider.token(sub="broker", exp=1))
            with pytest.raises(AuthenticationError, match="it has expired"):
                await login()
            file.write_text("")
            with pytest.raises(AuthenticationError, match="has no token"):
                await login()
            file.unlink()
            with pytest.raises(AuthenticationError, match="cannot be read"):
                await login()
            file.write_text(provider.token(sub="broker"))
            await login()

        run(work)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sasl.oauthbearer.token.endpoint.url": "https://issuer.example/token"}, "does not request tokens"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:/nowhere.jwt"}, "/nowhere.jwt cannot be read"),
        ({}, "the file: URL of a token"),
        ({"listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f'{MODULE} clientSecret="s3";'}, "no options"),
    ],
)
def test_a_broker_without_a_token_says_so(changed: dict[str, str], message: str) -> None:
    given = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        **changed,
    }
    with pytest.raises(Exception, match=message) as refused:
        connect_to(DynamicConfig(given), "SASL_PLAINTEXT")
    assert isinstance(refused.value, InvalidSettingError)
    assert "s3" not in str(refused.value)
