"""kafka-python and aiokafka over every listener and mechanism: let in with what is right, refused with what is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.broker.served import environment
from tests.security.identity_provider import ISSUER, Provider
from tests.security.secured import Secured

PASSWORDS = {"PLAIN": ("alice", "a-secret"), "SCRAM-SHA-256": ("sue", "s-secret"), "SCRAM-SHA-512": ("sue", "s-secret")}
CLIENTS = ("kafka-python", "aiokafka")
WAYS = [
    ("SSL", ""),
    ("MUTUAL", ""),
    *((listener, name) for listener in ("SASL_PLAINTEXT", "SASL_SSL") for name in (*PASSWORDS, "OAUTHBEARER")),
]
ALERTS = ("ALERT_CERTIFICATE_REQUIRED", "ALERT_UNKNOWN_CA")
OAUTH = "OAUTHBEARER"
WRONG = "wrong name or password"


class Stage(Secured):
    """A broker with every listener and every mechanism."""

    def __init__(self, folder: Path) -> None:
        self.provider = Provider()
        super().__init__(
            folder,
            {
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": self.provider.write(folder / "keys.json"),
                "sasl.oauthbearer.expected.issuer": ISSUER,
                "sasl.oauthbearer.expected.audience": "kafka",
                "listener.name.ssl.ssl.keystore.location": str(folder / "elsewhere.pem"),
            },
        )
        self.authority.sign("elsewhere", "/CN=broker", hosts="DNS:elsewhere.example")

    def case(self, listener: str, mechanism: str = "", reason: str = "", **other: Any) -> dict[str, Any]:
        """For both clients. `reason`: it must fail, and the client must know that."""
        protocol = "SSL" if listener == "MUTUAL" else listener
        settings = {"bootstrap_servers": self.address(listener), "security_protocol": protocol}
        if mechanism:
            settings["sasl_mechanism"] = mechanism
        if mechanism in PASSWORDS:
            name, password = PASSWORDS[mechanism]
            settings |= {"sasl_plain_username": name, "sasl_plain_password": "x" if reason else password}
        return {
            "settings": settings,
            "reason": reason,
            "token": self.provider.token() if mechanism == "OAUTHBEARER" else "",
            "trusted": str(self.authority.certificate),
            "any_host": listener == "SSL",  # whose certificate is for another host
            "own": str(self.client) if listener == "MUTUAL" else "",
            **other,
        }


def reason_of(client: str, case: dict[str, Any]) -> str:
    """aiokafka takes the broker's refusal of a token for a success, goes on, and then sees the connection end. It drops
    what TLS says after the handshake, too."""
    is_dropped = case["token"] or case["reason"] in ALERTS
    return "closed" if client == "aiokafka" and case["reason"] and is_dropped else str(case["reason"])


def test_every_way_in_and_every_refusal(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with stage.broker as broker:
        broker.create_topic("t")
        for mechanism in (1, 2):
            stage.add_user("sue", "s-secret", mechanism)
        cases = {f"{listener} {mechanism}": stage.case(listener, mechanism) for listener, mechanism in WAYS}
        cases |= {f"wrong {name}": stage.case("SASL_PLAINTEXT", name, WRONG) for name in PASSWORDS}
        cases |= {
            "stranger's token": stage.case("SASL_SSL", OAUTH, "its signature is wrong", token=Provider().token()),
            "expired token": stage.case("SASL_SSL", OAUTH, "it has expired", token=stage.provider.token(exp=1)),
            "other authority": stage.case("SSL", "", "CERTIFICATE", trusted=str(stage.stranger.certificate)),
            "other host": stage.case("SSL", "", "CERTIFICATE", any_host=False),
            "no certificate": stage.case("MUTUAL", "", ALERTS[0], own=""),
            "foreign certificate": stage.case("MUTUAL", "", ALERTS[1], own=str(stage.foreign)),
        }
        every = [
            {"name": [client, name], "client": client, **case, "reason": reason_of(client, case)}
            for client in CLIENTS
            for name, case in cases.items()
        ]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.security.python_clients"],
            input=json.dumps(every),
            capture_output=True,
            text=True,
            timeout=600,
            env=environment(),
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = {tuple(name): said for name, said in map(json.loads, done.stdout.splitlines())}
    assert len(found) == len(every)
    for case in every:
        said = found[tuple(case["name"])]
        assert (case["reason"] in said) if case["reason"] else said == "ok", (case["name"], said)
        assert "secret" not in said
