"""Our own clients and librdkafka log in with signed tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ixion.clients import Admin
from ixion.clients.admin.topics import NewTopic
from ixion.clients.faults import AuthenticationError
from ixion.testing import Broker
from tests.security.identity_provider import ISSUER, Provider


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module")
def broker(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    with Broker(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": provider.write(keys),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": "kafka",
            "connection.failed.authentication.delay.ms": "10",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:alice",
        }
    ) as running:
        running.keys = keys  # type: ignore[attr-defined]
        yield running


def admin(broker: Broker, token: Any) -> Admin:
    return Admin(
        broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token=token,
    )


def test_our_clients(broker: Broker, provider: Provider) -> None:
    with admin(broker, provider.token()) as alice:
        alice.create_topics([NewTopic("t")])
        assert [topic.name for topic in alice.list_topics()] == ["t"]
    given: list[str] = []

    def give() -> str:
        given.append(provider.token(sub="bob"))
        return given[-1]

    with admin(broker, give) as bob:
        assert bob.list_topics() == []  # bob has no right to see it
    assert given
    with pytest.raises(AuthenticationError, match="it has expired"), admin(broker, provider.token(exp=1)) as late:
        late.list_topics()
    with pytest.raises(AuthenticationError, match="not a signed token"), admin(broker, "x") as nobody:
        nobody.list_topics()


def test_a_connection_ends_with_its_token(broker: Broker, provider: Provider) -> None:
    async def lifetimes(real: Any) -> list[int]:
        every = [each for one in real.parts.server._processors() for each in one.connections.values()]
        return [each.gate._expires_ms - each.gate._monotonic_ms() for each in every if each.principal == "User:carl"]

    with admin(broker, provider.token(sub="carl", lives_s=100)) as carl:
        carl.list_topics()
        left_ms = broker.call(lifetimes)
        assert left_ms
        assert all(0 < each <= 100_000 for each in left_ms)


def test_new_keys_without_a_restart(broker: Broker, provider: Provider) -> None:
    after = Provider()
    both = {"keys": [*provider.key_set()["keys"], *after.key_set(only="rsa", rsa_id="r9")["keys"]]}
    broker.keys.write_text(json.dumps(both))  # type: ignore[attr-defined]
    deadline = time.monotonic() + 60
    while True:
        try:
            with admin(broker, after.token(key_id="r9")) as alice:
                alice.list_topics()
            break
        except AuthenticationError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_librdkafka(broker: Broker, provider: Provider) -> None:
    def client(token: str) -> AdminClient:
        options: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 300),
        }
        made = AdminClient(options)
        made.poll(0)
        return made

    assert client(provider.token()).list_topics(timeout=60).brokers
    with pytest.raises(KafkaException):
        client(Provider().token()).list_topics(timeout=3)
