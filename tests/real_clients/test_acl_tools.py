"""Kafka's AclCommand, of 4.3 and of 3.9.1, against a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from devtools.jvm import run_java
from devtools.parts import need
from ixion.testing import Broker
from tests.apis.guards.secured import secured
from tests.real_clients.toolbox import ToolBox

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with secured() as broker:
        yield broker


@pytest.fixture
def acls(box: ToolBox, guarded: Broker, tmp_path: Path) -> Acls:
    return Acls(partial(box.run, "AclCommand"), guarded, tmp_path)


class Acls:
    def __init__(self, run: Callable[..., tuple[int, str]], broker: Broker, path: Path) -> None:
        self._run = run
        self._broker = broker
        self._path = path

    def __call__(self, *words: str, user: str = "root") -> tuple[int, str]:
        place = self._path / f"{user}.properties"
        place.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={LOGIN} username="{user}" password="{user}-secret";\n'
        )
        where = ("--bootstrap-server", self._broker.bootstrap, "--command-config", str(place))
        return self._run(*where, *words)


def test_rules_are_added_listed_and_removed(acls: Acls) -> None:
    code, said = acls(
        *("--add", "--allow-principal", "User:alice", "--allow-host", "10.0.0.1", "--operation", "Read"),
        *("--topic", "tool-", "--resource-pattern-type", "prefixed"),
    )
    assert code == 0, said
    code, said = acls("--add", "--deny-principal", "User:bob", "--operation", "All", "--group", "tools")
    assert code == 0, said
    code, said = acls("--add", "--producer", "--allow-principal", "User:alice", "--topic", "tool-1")
    assert code == 0, said
    code, said = acls("--list")
    assert code == 0, said
    assert "resourceType=TOPIC, name=tool-, patternType=PREFIXED" in said
    assert "principal=User:alice, host=10.0.0.1, operation=READ, permissionType=ALLOW" in said
    assert "principal=User:bob, host=*, operation=ALL, permissionType=DENY" in said
    code, said = acls("--list", "--topic", "tool-1", "--resource-pattern-type", "match")
    assert said.count("resourceType=TOPIC") == 2
    assert "GROUP" not in said
    assert {each for each in ("WRITE", "DESCRIBE", "CREATE", "READ") if f"operation={each}," in said} == {
        *("WRITE", "DESCRIBE", "CREATE", "READ"),
    }
    for words in (("--topic", "*", "--resource-pattern-type", "any"), ("--group", "tools"), ("--topic", "tool-1")):
        code, said = acls("--remove", "--force", *words)
        assert code == 0, said
    code, said = acls("--remove", "--force", "--topic", "tool-", "--resource-pattern-type", "prefixed")
    assert code == 0, said
    assert acls("--list") == (0, "")


def test_a_user_without_the_right_gets_an_error(acls: Acls) -> None:
    code, said = acls("--list", user="bob")
    assert code != 0
    assert "ClusterAuthorizationException" in said or "uthoriz" in said


def test_the_tool_of_the_last_kafka_with_zookeeper(guarded: Broker, tmp_path: Path) -> None:
    classpath = need("kafka-3.9.1")

    def run(*words: str) -> tuple[int, str]:
        return 0, run_java("kafka.admin.AclCommand", *words, classpath=classpath)

    acls = Acls(run, guarded, tmp_path)
    acls("--add", "--consumer", "--allow-principal", "User:alice", "--topic", "old-", "--group", "old")
    said = acls("--list", "--principal", "User:alice")[1]
    assert "resourceType=TOPIC, name=old-, patternType=LITERAL" in said
    assert "resourceType=GROUP, name=old, patternType=LITERAL" in said
    assert "host=*, operation=READ, permissionType=ALLOW" in said
    said = acls("--remove", "--force", "--topic", "old-", "--group", "old")[1]
    assert "operation=READ" not in said.rpartition("Current ACLs")[2]
