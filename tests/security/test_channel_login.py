"""A channel between brokers whose login lasts for a while only, or is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.security.tls import client_context_of
from ixion.clients.address import Address
from ixion.clients.aio import Admin
from ixion.clients.channel import Channel
from ixion.clients.core.connection import Login
from ixion.clients.core.sasl_login import SaslCredentials
from ixion.clients.core.security import Credentials, Security, Tls
from ixion.clients.faults import AuthenticationError
from ixion.config.broker import BrokerConfig
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.sasl.scram import salted_password
from tests.security.secured import Secured

ALL = MetadataRequest(topics=None)
VERSION = 12
LONG_MS = 3_600_000


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    with made.broker:
        yield made


class Counted(Login):
    """A login by PLAIN whose session is over at once the first time."""

    def __init__(self) -> None:
        self.inner = SaslCredentials("PLAIN", "alice", "a-secret").login()
        self.logins = 0

    def first(self, versions: dict[int, tuple[int, int]]) -> tuple[ApiKey, int, Struct] | None:
        return self.inner.first(versions)

    def next(self, answer: Struct) -> tuple[ApiKey, int, Struct] | None:
        step = self.inner.next(answer)
        if isinstance(answer, SaslAuthenticateResponse):
            self.logins += 1
            self.lifetime_s = 1e-9 if self.logins == 1 else LONG_MS / 1000
        return step


class One(Credentials):
    def __init__(self, login: Login) -> None:
        self.one = login

    def login(self) -> Login:
        return self.one


def address(secured: Secured, listener: str) -> Address:
    host, _, port = secured.address(listener).rpartition(":")
    return Address(host, int(port))


def test_requests_wait_for_a_login_that_is_repeated(secured: Secured) -> None:
    login = Counted()
    channel = Channel(address(secured, "SASL_PLAINTEXT"), "broker-7", secure=lambda: Security(None, One(login)))

    async def work() -> None:
        answers = await asyncio.gather(*(channel.ask(ApiKey.METADATA, VERSION, ALL) for _ in range(3)))
        assert all(isinstance(answer, MetadataResponse) for answer in answers)
        assert login.logins == 2, "the first was over before the first request"
        await channel.ask(ApiKey.METADATA, VERSION, ALL)
        assert login.logins == 2
        channel.close()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_refused_login_and_a_certificate_of_a_stranger_are_clear(secured: Secured, tmp_path: Path) -> None:
    wrong = Security(None, SaslCredentials("PLAIN", "alice", "guess"))
    given = {
        "ssl.keystore.location": str(secured.foreign),
        "ssl.truststore.location": str(secured.stranger.certificate),
    }
    foreign = Security(Tls(client_context_of(BrokerConfig(given), "SSL")))

    async def work() -> None:
        for listener, security, message in (
            ("SASL_PLAINTEXT", wrong, "wrong name or password"),
            ("SSL", foreign, "certificate is not valid"),
        ):
            channel = Channel(address(secured, listener), "broker-7", secure=lambda it=security: it)  # type: ignore[misc]
            with pytest.raises(AuthenticationError, match=message):
                await channel.ask(ApiKey.METADATA, VERSION, ALL)
            channel.close()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_scram_salts_passwords_on_another_thread(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel between brokers, and our clients on asyncio. A second login knows the salted password."""
    salted_on: list[int] = []

    def salt(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
        salted_on.append(threading.get_ident())
        return salted_password(mechanism, password, salt, iterations)

    secured.add_user("carl", "c-secret", 2)
    monkeypatch.setattr("ixion.language.sasl.scram_client.salted_password", salt)
    carl = Security(None, SaslCredentials("SCRAM-SHA-512", "carl", "c-secret"))
    wrong = Security(None, SaslCredentials("SCRAM-SHA-512", "carl", "guess"))
    options: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}

    async def work() -> None:
        for _ in range(2):
            channel = Channel(address(secured, "SASL_PLAINTEXT"), "broker-7", secure=lambda: carl)
            assert isinstance(await channel.ask(ApiKey.METADATA, VERSION, ALL), MetadataResponse)
            channel.close()
        assert len(salted_on) == 1
        channel = Channel(address(secured, "SASL_PLAINTEXT"), "broker-7", secure=lambda: wrong)
        with pytest.raises(AuthenticationError, match="wrong name or password"):
            await channel.ask(ApiKey.METADATA, VERSION, ALL)
        channel.close()
        here = secured.address("SASL_PLAINTEXT")
        async with Admin(here, sasl_username="carl", sasl_password="c-secret", **options) as admin:
            assert (await admin.describe_cluster()).cluster_id
        async with Admin(here, sasl_username="carl", sasl_password="guess", **options) as admin:
            with pytest.raises(AuthenticationError, match="wrong name or password"):
                await admin.describe_cluster()
        assert len(salted_on) >= 4
        assert threading.get_ident() not in salted_on

    asyncio.run(asyncio.wait_for(work(), 60))
