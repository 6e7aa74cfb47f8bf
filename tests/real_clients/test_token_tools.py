"""Kafka's DelegationTokenCommand and ConfigCommand 4.3: tokens, a tool that logs in with one, new certificates."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path
from typing import Any

from ixion.testing import Broker
from tests.apis.guards.secured import secured
from tests.real_clients.toolbox import ToolBox
from tests.security.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SETTINGS = {"delegation.token.secret.key": "secret", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"}


def test_a_token_is_made_used_renewed_and_expired(box: ToolBox, tmp_path: Path) -> None:
    with secured(SETTINGS) as broker:

        def properties(name: str, mechanism: str, jaas: str) -> list[str]:
            place = tmp_path / f"{name}.properties"
            place.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n")
            return ["--bootstrap-server", broker.bootstrap, "--command-config", str(place)]

        alice = properties("alice", "PLAIN", f'{PLAIN} username="alice" password="alice-secret";')

        def token(*words: str) -> str:
            code, said = box.run("DelegationTokenCommand", *alice, *words)
            assert code == 0, said
            return said

        said = token("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
        found = re.search(r"^(\S+)\s+(\S+)\s+User:alice\s+User:alice\s+\[User:bob\]", said, re.MULTILINE)
        assert found is not None, said
        token_id, secret = found.groups()
        job = properties("job", "SCRAM-SHA-512", f'{SCRAM} username="{token_id}" password="{secret}" tokenauth="true";')
        assert box.run("TopicCommand", *job, "--list") == (0, "")
        assert token_id in token("--describe", "--owner-principal", "User:alice")
        assert "Completed renew" in token("--renew", "--renew-time-period", "3600000", "--hmac", secret)
        assert "Completed expire" in token("--expire", "--expiry-time-period", "-1", "--hmac", secret)
        assert token_id not in token("--describe", "--owner-principal", "User:alice")
        code, said = box.run("TopicCommand", *job, "--list")
        assert code != 0
        assert "SaslAuthenticationException" in said


def test_a_certificate_is_replaced(box: ToolBox, tmp_path: Path) -> None:
    """ConfigCommand names another file for the key store of a listener (KIP-226)."""
    authority = Authority(tmp_path)
    files = [authority.sign(name, "/CN=broker") for name in ("first", "second")]
    name = "listener.name.outside.ssl.keystore.location"
    settings = {
        "broker.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        name: files[0],
    }
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with Broker(settings) as broker:

        async def port(real: Any) -> int:
            return int(real.parts.server.port("OUTSIDE"))

        def serial() -> object:
            place = ("127.0.0.1", broker.call(port))
            with (
                socket.create_connection(place, timeout=60) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
            ):
                found = secured.getpeercert()
                assert found is not None
                return found["serialNumber"]

        def set_to(file: object) -> tuple[int, str]:
            where = ("--bootstrap-server", broker.bootstrap, "--entity-type", "brokers", "--entity-name", "1")
            return box.run("kafka.admin.ConfigCommand", *where, "--alter", "--add-config", f"{name}={file}")

        before = serial()
        code, said = set_to(files[1])
        assert code == 0, said
        assert serial() != before
        code, said = set_to(tmp_path / "none.pem")
        assert code != 0
        assert "No such file" in said
