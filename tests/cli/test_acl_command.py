"""`ixion acl`, against a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.cli.app import find
from ixion.cli.command import Group
from ixion.cli.needed_rights import NEEDED
from ixion.testing import Broker
from tests.apis.guards.secured import secured
from tests.cli.harness import Ixion


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with secured() as broker:
        yield broker


@pytest.fixture
def ixion(
    guarded: Broker, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("IXION_MECHANISM", "PLAIN")
    made = Ixion(guarded.bootstrap, capfdbinary, monkeypatch, tmp_path)
    log_in(monkeypatch, tmp_path, "root")
    made("acl", "remove", "--yes", "--all")
    return made


def log_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: str) -> None:
    (tmp_path / "password").write_text(f"{user}-secret\n")
    monkeypatch.setenv("IXION_USER", user)
    monkeypatch.setenv("IXION_PASSWORD_FILE", str(tmp_path / "password"))


def test_rules_are_added_listed_and_removed(ixion: Ixion) -> None:
    assert ixion("acl", "add", "--allow", "alice", "-o", "read", "-t", "orders", "-g", "reports") == (
        "added: ALLOW Read to User:alice from * on Topic:LITERAL:orders\n"
        "added: ALLOW Read to User:alice from * on Group:LITERAL:reports\n"
    )
    ixion("acl", "add", "--deny", "User:bob", "-t", "pay", "--prefixed", "--host", "10.0.0.1")
    ixion("acl", "add", "--allow", "*", "-o", "describe", "--cluster")
    assert ixion.json("acl", "list", "--topic", "payments", "--matching") == {
        "kind": "topic",
        "name": "pay",
        "pattern": "prefixed",
        "principal": "User:bob",
        "host": "10.0.0.1",
        "operation": "all",
        "permission": "deny",
    }
    assert [row["principal"] for row in ixion.jsons("acl", "ls")] == ["User:alice", "User:bob", "User:alice", "User:*"]
    assert [row["name"] for row in ixion.jsons("acl", "ls", "--principal", "alice")] == ["orders", "reports"]
    assert ixion("acl", "remove", "--yes", "--principal", "alice", "-t", "orders") == (
        "removed: ALLOW Read to User:alice from * on Topic:LITERAL:orders\n"
    )
    assert ixion("acl", "rm", "--yes", "--principal", "nobody") == ""
    assert ixion.errors == "ixion: there is no such rule\n"
    assert len(ixion.jsons("acl", "list")) == 3


def test_check_says_which_rule_decides(ixion: Ixion) -> None:
    ixion("acl", "add", "--allow", "alice", "-o", "write", "-t", "pay", "--prefixed")
    ixion("acl", "add", "--deny", "alice", "-o", "write", "-t", "payroll")
    assert ixion("acl", "check", "alice", "describe", "topic", "payments") == (
        "User:alice may Describe Topic:payments: ALLOW Write to User:alice from * on Topic:PREFIXED:pay\n"
    )
    assert ixion("acl", "check", "alice", "write", "topic", "payroll", code=1) == (
        "User:alice may not Write Topic:payroll: DENY Write to User:alice from * on Topic:LITERAL:payroll\n"
    )
    assert ixion("acl", "check", "bob", "alter", "cluster", code=1) == (
        "User:bob may not Alter Cluster:kafka-cluster: the resource has no rules\n"
    )
    assert "is a super user" in ixion("acl", "check", "root", "alter", "cluster")


def test_a_user_without_the_right_learns_that(ixion: Ixion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log_in(monkeypatch, tmp_path, "bob")
    assert "the principal may not do this on the cluster" in ixion.refused("acl", "list")
    assert "the principal may not do this on the cluster" in ixion.refused("acl", "add", "--allow", "bob", "-t", "x")


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("add", "-t", "x"), "--allow or --deny"),
        (("add", "--allow", "a"), "name a resource"),
        (("add", "--allow", "a", "-t", "x", "-o", "reed"), "did you mean 'read'?"),
        (("add", "--allow", "a", "--cluster", "--prefixed"), "a cluster has none"),
        (("remove",), "every rule"),
        (("list", "-t", "a", "-g", "b"), "one resource"),
        (("list", "--matching"), "--matching needs the name"),
        (("check", "a", "read", "topic"), "which topic?"),
        (("check", "a", "read", "topics", "x"), "did you mean 'topic'?"),
    ],
)
def test_mistakes(ixion: Ixion, words: tuple[str, ...], because: str) -> None:
    assert because in ixion.refused("acl", *words, code=2)


@pytest.mark.parametrize(
    ("words", "stdin", "needs"),
    [
        (("produce", "orders", "--no-create"), "x\n", "; ixion produce needs Write "),
        (("consume", "orders", "-e"), "", "; ixion consume needs Read on the topic"),
        (("consume", "open", "-g", "private", "-e"), "", "; ixion consume needs Read on the group"),
        (("topic", "create", "other"), "", "; ixion topic create needs Create on the topic"),
        (("topic", "delete", "orders", "--yes"), "", "; ixion topic delete needs Delete on the topic"),
        (
            ("config", "set", "topic", "open", "retention.ms=1"),
            "",
            "; ixion config set needs AlterConfigs on the topic",
        ),
        (("acl", "list"), "", "; ixion acl list needs Describe on the cluster"),
    ],
)
def test_a_refusal_names_the_missing_operation(
    ixion: Ixion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], stdin: str, needs: str
) -> None:
    for name in ("orders", "open"):
        ixion("topic", "create", name, "--if-not-exists")
        ixion("produce", name, stdin="x\n")
    ixion("acl", "add", "--allow", "alice", "-o", "describe", "-t", "*")
    ixion("acl", "add", "--allow", "alice", "-o", "read", "-t", "open")
    log_in(monkeypatch, tmp_path, "alice")
    assert needs in ixion.refused(*words, stdin=stdin)


def test_every_command_in_the_table_of_rights_exists() -> None:
    for name in NEEDED:
        first, *second = name.split()
        found = find(first)
        assert isinstance(found, Group) == bool(second)
        assert not isinstance(found, Group) or found.find(second[0]) is not None
