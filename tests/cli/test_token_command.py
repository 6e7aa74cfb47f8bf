"""`ixion token`: a token is made into a file that only its owner can read, and other commands log in with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.testing import Broker
from tests.apis.guards.secured import secured
from tests.cli.harness import Ixion


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    more = {"delegation.token.secret.key": "secret", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"}
    with secured(more) as running:
        yield running


@pytest.fixture
def ixion(
    broker: Broker, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "alice.txt").write_text("alice-secret\n")
    return Ixion(broker.bootstrap, capfdbinary, monkeypatch, tmp_path)


def test_a_token_is_made_used_renewed_and_ended(ixion: Ixion, tmp_path: Path) -> None:
    alice = ["--user", "alice", "--mechanism", "PLAIN", "--password-file", str(tmp_path / "alice.txt")]
    file = tmp_path / "job.token"
    said = ixion("token", "create", "--to", str(file), "--renewer", "bob", "--hours", "2", *alice)
    token_id, secret = file.read_text().split()
    assert said.startswith(f"created {token_id} of User:alice")
    assert secret not in said
    assert file.stat().st_mode & 0o777 == 0o600
    assert ixion("topic", "list", "--token-file", str(file)) == ""
    (row,) = ixion.jsons("token", "list", *alice)
    assert (row["token"], row["owner"], row["renewers"]) == (token_id, "User:alice", ["User:bob"])
    assert row["max_ms"] - row["issued_ms"] == 2 * 3_600_000
    assert secret not in ixion("token", "list", "--owner", "alice", *alice)
    assert ixion("token", "renew", token_id, "--hours", "1", *alice).startswith(f"{token_id} expires at ")
    assert "not issued over this kind" in ixion.refused("token", "list", "--token-file", str(file))
    assert ixion("token", "expire", "--yes", token_id, *alice) == f"removed {token_id}\n"
    assert "wrong name or password" in ixion.refused("topic", "list", "--token-file", str(file))
    assert f"no delegation token {token_id}" in ixion.refused("token", "renew", token_id, *alice)


def test_mistakes(ixion: Ixion, tmp_path: Path) -> None:
    alice = ["--user", "alice", "--mechanism", "PLAIN", "--password-file", str(tmp_path / "alice.txt")]
    there = tmp_path / "there"
    there.write_text("one two three")
    assert "give --to FILE" in ixion.refused("token", "create", *alice, code=2)
    assert "File exists" in ixion.refused("token", "create", "--to", str(there), *alice)
    refused = tmp_path / "refused"
    ixion.refused("token", "create", "--to", str(refused), "--owner", "bob", *alice)
    assert not refused.exists()
    assert "holds no token" in ixion.refused("topic", "list", "--token-file", str(there), code=2)
    assert "excludes --user" in ixion.refused("topic", "list", "--token-file", str(there), *alice, code=2)
