"""Apache Kafka 3.9 as the judge of our tables, and Java as that of our properties."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.config.properties import parse_properties
from ixion.config.setting import Setting, text_of
from ixion.config.table import BROKER_SETTINGS
from ixion.config.topic import BEHIND, OWN, TOPIC_SETTINGS
from tests.config import test_security_settings as security

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="the same in both runs; done in the compiled one"
)

SOURCE = Path(__file__).parent / "java" / "SettingsOracle.java"

DIFFERENT_ON_PURPOSE = {
    "queued.max.request.bytes",
    "listeners",
    "log.dir",
    "group.initial.rebalance.delay.ms",
    "group.coordinator.rebalance.protocols",
    "group.consumer.migration.policy",
    "group.consumer.assignors",
    "sasl.oauthbearer.expected.audience",  # an empty list, not null
    "ssl.keystore.type",  # PEM; there is no JKS
    "ssl.truststore.type",
}
# Kafka changes these while it runs. Here they stay as they were at the start, are described as such, and a change is
# refused.
FIXED_AT_START = {
    "listeners",
    "listener.security.protocol.map",
    "num.network.threads",
    "background.threads",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.enabled.mechanisms",
}

# The last two are Kafka's as well, but of its authorizers, not of its broker.
OURS = {
    "ixion.internal.topic.write.listeners",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "delivery.delay.topics",
    "zookeeper.sasl.jaas.config",  # a property of the JVM in Kafka
    "zookeeper.sasl.jaas.file",
    "web.pipelines",
    "web.schema.registry.url",
    "web.tls.listener",
    "web.write",
}
DEAD_LETTERS = "errors.deadletterqueue."  # KIP-1191, which no release of Kafka has yet
# Kafka has these for dynamic settings only, and does not list them with the others.
DYNAMIC_ONLY = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
# Kafka has no limits on these, but refuses to start by a rule; the topic settings in front of them have limits.
LIMITED_BY_RULES = {"log.roll.ms", "log.roll.jitter.ms", "log.retention.ms", "log.flush.interval.ms"}
# Kafka takes any value, and some of them let nobody in.
LIMITED_HERE = {
    "ssl.endpoint.identification.algorithm",
    "ssl.enabled.protocols",
    "zookeeper.ssl.enabled.protocols",
    "sasl.server.max.receive.size",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "connections.max.reauth.ms",
}
# Names that concern connections, logins and rights, and classes that a user may plug in.
SECURITY = re.compile(
    r"^(ssl|sasl|security|zookeeper\.ssl|zookeeper\.set|password\.encoder|delegation\.token|super\.users"
    r"|allow\.everyone|authorizer|principal|listener|config\.providers)"
    r"|\.(class|classes|class\.names?)$|polic|callback|listener|max\.connection|connections?\.(max|failed)"
)
PROTECT_NOTHING = {
    "listeners",
    "advertised.listeners",
    "connections.max.idle.ms",
    "group.consumer.migration.policy",
    "group.share.persister.class.name",
    "log.cleanup.policy",
    "remote.log.metadata.manager.class.name",
    "remote.log.metadata.manager.listener.name",
    "remote.log.storage.manager.class.name",
    "replica.selector.class",
}
NEWER = {f"group.consumer.{limit}assignment.interval.ms" for limit in ("", "min.", "max.")}  # since 4.3
AN_HOUR_SINCE_4 = {"log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms"}  # unlimited in 3.9

ODD_FILE = (
    "# comment \\\n! another\n\n   \n"
    "plain=value\n  indented = value with blanks  \ncolon: value\nblank value\ntabs\t=\tvalue\nequals==\n"
    "no.value\nempty=\nkey\\ with\\=odd\\:chars=1\nlong=one,\\\n   two,\\\n\tthree\nend\\\\\nafter=2\n"
    "twice=1\ntwice=2\nescapes=\\t\\n\\r\\f\\\\\\q\\u0041\\u00e9\\ud83d\\ude00\n"
    "utf=主题 é\r\nwindows=line\r\nold=mac\rlast=\\"
)

Lines = list[list[str]]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    path = need("kafka-3.9.1")
    odd = tmp_path_factory.mktemp("odd") / "odd.properties"
    odd.write_bytes(ODD_FILE.encode())
    printed = run_java("SettingsOracle", str(odd), classpath=f"{compile_java(SOURCE, path)}:{path}")
    return [[unescaped(column) for column in line.split("\t")[:-1]] for line in printed.splitlines()]


def unescaped(column: str) -> str:
    """Java's null is "null", its text starts with "=" and has what is not ASCII as escapes."""
    text = column.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16")
    return text[1:] if text.startswith("=") else "<null>"


def rows(lines: Lines, what: str) -> dict[str, list[str]]:
    return {columns[1]: columns[2:] for columns in lines if columns[0] == what}


def limits(setting: Setting[Any]) -> str:
    """In the words of Kafka's validators."""
    if setting.choices:
        return f"[{', '.join(setting.choices)}]"
    if setting.least is None:
        return ""
    high = "" if setting.most is None else f",{setting.most}"
    return f"[{setting.least},...{high}]" + ("" if setting.also is None else f" or {setting.also}")


def test_every_broker_setting_is_kafkas(lines: Lines, modes: dict[str, str]) -> None:
    kafka = rows(lines, "broker")
    assert len(BROKER_SETTINGS) > 150
    for name, ours in BROKER_SETTINGS.items():
        if name.startswith(("group.share.", "share.", "group.streams.")):  # those of 4.3; 3.9 had previews at most
            assert name in modes
            continue
        if name in NEWER | OURS | DYNAMIC_ONLY or name.startswith(DEAD_LETTERS):
            assert name not in kafka
            continue
        differs = name in DIFFERENT_ON_PURPOSE or name in AN_HOUR_SINCE_4
        default = ours.parse(kafka[name][1]) if differs else ours.default
        text = text_of(default)
        shown = [ours.kind.name, "<null>" if text is None else text, limits(ours), ours.scope.value]
        expected = kafka[name]
        if name in FIXED_AT_START | {"advertised.listeners"}:  # which 4.3 does not change either
            assert expected[3] in ("per-broker", "cluster-wide"), name
            expected[3] = "read-only"
        if name in LIMITED_BY_RULES | LIMITED_HERE:
            assert expected[2] == "", name
            expected[2] = limits(ours)
        if name == "authorizer.class.name":
            expected[2] = ""  # "non-null string", which ours all are
        if name == "group.consumer.assignors":
            expected[2] = limits(ours)  # Kafka loads any class; ours are the two of Kafka's own
        if name == "group.consumer.migration.policy":
            expected[2] = expected[2].removeprefix("(case insensitive) ").lower()
        assert shown == expected, name


@pytest.fixture(scope="module")
def modes() -> dict[str, str]:
    """Of each broker setting of 4.3: whether it can be changed while the broker runs."""
    path = need("kafka-4.3.0")
    source = Path(__file__).parent / "java" / "ModesOracle.java"
    printed = run_java("ModesOracle", classpath=f"{compile_java(source, path)}:{path}")
    return dict(line.split("\t") for line in printed.splitlines())


def test_no_setting_of_security_is_forgotten(lines: Lines, modes: dict[str, str]) -> None:
    """`test_security_settings` walks them by lists, which must be whole."""
    walked = {*security.IN_BOTH, *security.ONLY_3_9, *security.ONLY_4_3, *security.ONLY_TIMES}
    for version in (rows(lines, "broker").keys(), modes.keys()):
        concerned = {name for name in version if SECURITY.search(name)} - PROTECT_NOTHING
        assert len(concerned) > 70
        assert concerned <= walked, concerned - walked


def test_what_can_be_changed_is_what_kafka_4_3_changes(modes: dict[str, str]) -> None:
    known = {name: setting.scope.value for name, setting in BROKER_SETTINGS.items() if name in modes}
    assert len(known) > 130
    differing = {name for name, scope in known.items() if scope != modes[name]}
    assert differing == FIXED_AT_START & modes.keys()
    assert {known[name] for name in differing} == {"read-only"}


def test_every_topic_setting_is_kafkas(lines: Lines) -> None:
    kafka, behind = rows(lines, "topic"), rows(lines, "synonym")
    assert len(TOPIC_SETTINGS) > 20
    for name, ours in TOPIC_SETTINGS.items():
        if name in OWN:
            assert name not in behind
            if name.startswith(("delivery.delay.", DEAD_LETTERS)):  # which Kafka does not have
                assert name not in kafka
                continue
            assert [ours.kind.name, text_of(ours.default)] == kafka[name][:2], name
            continue
        assert behind[name] == [BEHIND[name].name]
        if name in AN_HOUR_SINCE_4:
            assert text_of(ours.default) == "3600000"
            continue
        assert [ours.kind.name, text_of(ours.default), limits(ours)] == kafka[name][:3], name


def test_properties_are_read_as_java_does(lines: Lines) -> None:
    java = {name: columns[0] for name, columns in rows(lines, "property").items()}
    assert len(java) == 18
    assert parse_properties(ODD_FILE) == java
