"""How commands get to a cluster that wants TLS and a login, and that no password is shown anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.cli.access import Access, read_access
from ixion.cli.command import UsageError
from tests.cli.harness import Ixion
from tests.security.secured import Secured

SECRET = "c-secret"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("certificates"))
    with made.broker:
        made.broker.create_topic("orders")
        made.add_user("carol", SECRET, 1)
        made.add_user("carol", SECRET, 2)
        yield made


@pytest.fixture
def ixion(
    secured: Secured, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Ixion(secured.address("SASL_SSL"), capfdbinary, monkeypatch, tmp_path)


@pytest.fixture
def password(tmp_path: Path) -> str:
    place = tmp_path / "password"
    place.write_text(f"{SECRET}\nnot this line\n")
    return str(place)


def profiles(tmp_path: Path, text: str, mode: int = 0o600) -> None:
    place = tmp_path / "config" / "ixion" / "profiles.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)


def test_every_kind_of_command_logs_in(ixion: Ixion, secured: Secured, password: str) -> None:
    login = ["--tls-ca", str(secured.authority.certificate), "--user", "carol", "--password-file", password]
    assert "orders" in ixion("topic", "list", *login)
    assert "orders" in ixion(*login, "topic", "list", "--mechanism", "SCRAM-SHA-256")
    ixion("produce", "orders", *login, stdin="one\ntwo\n")
    assert ixion("consume", "orders", "--exit-at-end", *login) == "one\ntwo\n"
    assert ixion("consume", "orders", "--group", "g", "--from", "earliest", "--exit-at-end", *login) == "one\ntwo\n"
    ixion("perf", "produce", "orders", "--records", "10", *login)
    assert "BROKER" in ixion("cluster", "info", *login)


def test_a_profile_stands_in_for_all_of_it(
    ixion: Ixion, secured: Secured, password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IXION_BOOTSTRAP")
    ca = secured.authority.certificate
    profiles(
        tmp_path,
        f"""
        [default]
        bootstrap = "{secured.address("SSL")}"
        tls_ca = "{ca}"
        [production]
        bootstrap = "{secured.address("SASL_SSL")}"
        tls_ca = "{ca}"
        user = "carol"
        password_file = "{password}"
        timeout = 20
        [kept]
        bootstrap = "{secured.address("SASL_PLAINTEXT")}"
        user = "carol"
        password = "{SECRET}"
        """,
    )
    assert "orders" in ixion("topic", "list")
    assert "orders" in ixion("topic", "list", "--profile", "production")
    assert "orders" in ixion("topic", "list", "--profile", "kept")
    monkeypatch.setenv("IXION_PROFILE", "production")
    assert "orders" in ixion("topic", "list")
    assert "wrong name or password" in ixion.refused("topic", "list", "--user", "nobody")
    assert "there is no profile" not in ixion("__complete", "bash", "topic", "describe", "ord")
    assert ixion("__complete", "bash", "topic", "describe", "ord") == "orders\n"
    assert "no profile 'producton'; did you mean 'production'?" in ixion.refused(
        "topic", "list", "--profile", "producton", code=2
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[default]\nuser = 3", "user must be text"),
        ("[default]\ntimeout = true", "timeout must be a number"),
        ("[default]\ntls = 'yes'", "tls must be true or false"),
        ("[default]\nusr = 'x'", "there is no option 'usr'; did you mean 'user'?"),
        ("default = 1", "has no profile"),
        ("[default", "cannot be read"),
        ("[default]\npassword_file = 'x'", "--password-file needs --user"),
    ],
)
def test_a_wrong_profile_is_named(ixion: Ixion, tmp_path: Path, text: str, why: str) -> None:
    profiles(tmp_path, text)
    assert why in ixion.refused("topic", "list", code=2)


def test_a_password_in_a_file_that_others_can_read_is_refused(ixion: Ixion, tmp_path: Path) -> None:
    profiles(tmp_path, f"[default]\nuser = 'carol'\npassword = '{SECRET}'", 0o644)
    line = ixion.refused("topic", "list", code=2)
    assert "other users can read the file: chmod 600" in line
    assert SECRET not in line


def test_what_is_missing_or_wrong_is_said(ixion: Ixion, secured: Secured, password: str, tmp_path: Path) -> None:
    assert "there is no profile 'x'" in ixion.refused("topic", "list", "--profile", "x", code=2)
    assert "the password of 'carol' is missing: give --password-file" in ixion.refused(
        "topic", "list", "--user", "carol", code=2
    )
    assert "--mechanism needs --user" in ixion.refused("topic", "list", "--mechanism", "PLAIN", code=2)
    (tmp_path / "empty").write_text("\n")
    empty = str(tmp_path / "empty")
    assert "the first line" in ixion.refused("topic", "list", "--user", "c", "--password-file", empty, code=2)
    assert "/none: No such file" in ixion.refused("topic", "list", "--user", "c", "--password-file", "/none")
    ca = ["--tls-ca", str(secured.authority.certificate)]
    wrong = ixion.refused("topic", "list", *ca, "--user", "alice", "--password-file", password, "--mechanism", "PLAIN")
    assert "wrong name or password" in wrong
    assert SECRET not in wrong
    assert "allowed are PLAIN, SCRAM-SHA-256" in ixion.refused(
        "topic", "list", *ca, "--user", "a", "--password-file", password, "--mechanism", "X", code=2
    )
    assert "certificate is not valid" in ixion.refused("topic", "list", "--tls")
    assert "cannot be read" in ixion.refused("topic", "list", "--tls-ca", "/none", code=2)


def test_no_text_of_an_access_shows_the_password(tmp_path: Path, password: str) -> None:
    access = read_access({"user": "carol", "password_file": password})
    assert access.security["sasl_password"] == SECRET
    assert SECRET not in repr(access) + str(access)
    assert isinstance(access, Access)


def test_completion_never_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with pytest.raises(UsageError, match="is missing"):
        read_access({"user": "carol"}, may_ask=False)
