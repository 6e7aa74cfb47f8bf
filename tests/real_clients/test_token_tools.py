"""Kafka's DelegationTokenCommand 4.3, and a tool of Kafka's that logs in with the token that it made."""

from __future__ import annotations

import re
from pathlib import Path

from tests.apis.guards.secured import secured
from tests.real_clients.toolbox import ToolBox

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
