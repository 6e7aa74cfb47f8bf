"""`ixion user`: users are made over the wire, or in a data directory before the first start; no password is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing import Broker
from tests.cli.harness import Ixion

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "10",
}
SECRET = "alice's secret"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        yield broker


@pytest.fixture
def ixion(
    broker: Broker, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "alice.txt").write_text(f"{SECRET}\n")
    return Ixion(broker.bootstrap, capfdbinary, monkeypatch, tmp_path)


def secured(broker: Broker) -> str:
    async def port(real: RealBroker) -> int:
        return real.parts.server.port("SASL_PLAINTEXT")

    return f"127.0.0.1:{broker.call(port)}"


def test_a_user_comes_logs_in_and_goes(ixion: Ixion, broker: Broker, tmp_path: Path) -> None:
    password = str(tmp_path / "alice.txt")
    assert ixion("user", "add", "alice", "--new-password-file", password) == "added alice\n"
    ixion("user", "add", "b,ob", "--only", "SCRAM-SHA-256", "--iterations", "8192", "--new-password-file", password)
    rows = [(row["user"], row["mechanism"], row["iterations"]) for row in ixion.jsons("user", "list")]
    assert rows == [
        ("alice", "SCRAM-SHA-256", 4096),
        ("alice", "SCRAM-SHA-512", 4096),
        ("b,ob", "SCRAM-SHA-256", 8192),
    ]
    assert SECRET not in ixion("user", "list")
    login = ["-b", secured(broker), "--user", "alice", "--password-file", password]
    ixion("cluster", "info", *login)
    ixion("cluster", "info", *login, "--mechanism", "SCRAM-SHA-256")
    assert ixion("user", "rm", "--yes", "alice", "b,ob") == "removed alice\nremoved b,ob\n"
    assert ixion("user", "list") == ""
    assert "there are no users" in ixion.errors
    assert "wrong name or password" in ixion.refused("cluster", "info", *login)
    assert "user 'nobody' has no SCRAM credentials" in ixion.refused("user", "rm", "--yes", "nobody")


def test_a_user_that_was_there_before_the_first_start(ixion: Ixion, tmp_path: Path) -> None:
    data, password = str(tmp_path / "data"), str(tmp_path / "alice.txt")
    assert ixion("user", "add", "al/ice", "--data", data, "--new-password-file", password) == "added al/ice\n"
    ixion("user", "add", "bob", "--data", data, "--new-password-file", password)
    assert ixion("user", "rm", "--yes", "bob", "--data", data) == "removed bob\n"
    assert "user 'bob' has no SCRAM" in ixion.refused("user", "rm", "--yes", "bob", "--data", data)
    (first, second) = ixion.jsons("user", "list", "--data", data)
    assert (first["user"], first["mechanism"], second["mechanism"]) == ("al/ice", "SCRAM-SHA-256", "SCRAM-SHA-512")
    with Broker(SETTINGS, data=data) as started:
        login = ["--user", "al/ice", "--password-file", password]
        assert "BROKER" in ixion("cluster", "info", "-b", secured(started), *login)
        assert [row["user"] for row in ixion.jsons("user", "list", "-b", started.bootstrap)] == ["al/ice"] * 2
        line = ixion.refused("user", "list", "--data", data)
        assert "another process has it open; if a broker runs on" in line or "leave out --data" in line


def test_mistakes(ixion: Ixion, tmp_path: Path) -> None:
    password = str(tmp_path / "alice.txt")
    assert "give --new-password-file" in ixion.refused("user", "add", "x", code=2)
    assert "--only is SCRAM-SHA-256 or SCRAM-SHA-512" in ixion.refused(
        "user", "add", "x", "--only", "PLAIN", "--new-password-file", password, code=2
    )
    assert "--iterations must be at least 4096" in ixion.refused("user", "add", "x", "--iterations", "1", code=2)
    (tmp_path / "file").write_text("")
    assert ixion.refused("user", "list", "--data", str(tmp_path / "file"))
