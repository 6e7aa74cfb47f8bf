"""A broker with a listener of every kind, and users that may come in."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.security.gate import Gate, SaslAnswer
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from ixion.language.sasl.scram import salted_password
from ixion.testing import Broker
from tests.apis.asking import Asking
from tests.security.certificates import Authority

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a-secret" user_bob="b-secret";'
LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "MUTUAL")
PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,MUTUAL:SSL"


AGAIN = " again"


def count_logins(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """By principal, from now on, of brokers in this process; by principal + AGAIN those on an open connection."""
    logins: Counter[str] = Counter()
    authenticate = Gate.authenticate

    def counted(gate: Gate, received: bytes) -> SaslAnswer:
        was_open = gate.is_open
        answer = authenticate(gate, received)
        logins[gate.principal] += gate.is_open
        logins[gate.principal + AGAIN] += was_open and gate.is_open
        return answer

    monkeypatch.setattr(Gate, "authenticate", counted)
    return logins


class Secured:
    """One broker with a listener of every kind."""

    def __init__(self, directory: Path, settings: dict[str, Any] | None = None) -> None:
        self.authority = Authority(directory)
        self.stranger = Authority(directory, "stranger")
        self.pem = self.authority.sign("broker", "/O=ixion/CN=broker")
        self.client = self.authority.sign("client", "/O=ixion/OU=team/CN=client")
        self.foreign = self.stranger.sign("foreign", "/CN=foreign")
        self.broker = Broker(
            {
                "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
                "listener.security.protocol.map": PROTOCOLS,
                "inter.broker.listener.name": "PLAINTEXT",
                "ssl.keystore.location": self.pem,
                "ssl.truststore.location": self.authority.certificate,
                "listener.name.mutual.ssl.client.auth": "required",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
                "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
                "connection.failed.authentication.delay.ms": "10",
                **(settings or {}),
            }
        )

    def address(self, listener: str) -> str:
        async def port(real: RealBroker) -> int:
            return real.parts.server.port(listener)

        return f"127.0.0.1:{self.broker.call(port)}"

    def options(self, listener: str, **more: str) -> dict[str, Any]:
        """For librdkafka."""
        found: dict[str, Any] = {"bootstrap.servers": self.address(listener), "socket.timeout.ms": 20_000}
        protocol = "SSL" if listener == "MUTUAL" else listener
        found["security.protocol"] = protocol
        if "SSL" in protocol:
            found["ssl.ca.location"] = str(self.authority.certificate)
        return found | {name.replace("_", "."): value for name, value in more.items()}

    def add_user(self, name: str, password: str, mechanism: int = 1) -> None:
        kind = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}[mechanism]
        salt = os.urandom(16)
        upsertion = ScramCredentialUpsertion(
            name=name,
            mechanism=mechanism,
            iterations=4096,
            salt=salt,
            salted_password=salted_password(kind, password, salt, 4096),
        )
        with Asking(self.broker.bootstrap) as asking:
            request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
            (result,) = asking.ask(request, AlterUserScramCredentialsResponse).results
        assert result.error_code == ErrorCode.NONE, result.error_message
