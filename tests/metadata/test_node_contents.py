"""What the nodes hold: ours read back, Kafka's judgement on all of it, and nonsense."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devtools.jvm import QUICK, compile_java, java_command
from devtools.parts import need
from ixion.broker.metadata import acl_node, broker_node, cluster_node, config_node, notification_node, paths, topic_node
from ixion.broker.metadata.broker_node import Registration
from ixion.broker.metadata.cluster_node import ProducerIdBlock
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.topic_node import PartitionState, Replicas, TopicNode
from ixion.config.listeners import Endpoint
from ixion.language.model.acl_binding import Entry, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind

SOURCE = Path(__file__).parent / "java" / "NodeOracle.java"
NOW_MS = 1_700_000_000_000
PLAIN, SECURE = Endpoint("CLIENT", "host1", 9092), Endpoint("BETWEEN", "::1", 9093, "SSL")
TOPIC_ID = bytes(range(16))

# kind as the oracle names it, value, encode, decode
Sample = tuple[str, Any, Callable[[Any], bytes], Callable[[bytes], Any]]


ORDERS = ResourcePattern(ResourceKind.TRANSACTIONAL_ID, "orders:1")
# Every operation, for a user of a certificate and for everybody; a set to Kafka.
RULES = tuple(
    Entry(principal, host, Operation(number), permission)
    for number in range(2, 15)
    for principal, host, permission in (
        ('User:CN=bob,O="x"', "*", Permission.ALLOW),
        ("User:*", "10.0.0.1", Permission.DENY),
    )
)


def acls(data: bytes) -> tuple[Entry, ...]:
    return acl_node.decode_acls(ORDERS, data)


def registration(data: bytes) -> Registration:
    return broker_node.decode_registration(1, data)


def topic(data: bytes) -> TopicNode:
    return topic_node.decode_topic("t", data)


def state(data: bytes) -> PartitionState:
    return topic_node.decode_partition_state("t", 0, data)


def config(data: bytes) -> dict[str, str]:
    return config_node.decode_config("topics/t", data)


BROKER = broker_node.encode_registration
TOPIC, STATE = topic_node.encode_topic, topic_node.encode_partition_state
NAMES = ("al.ice", "CN=al ice,O=x.y+1", "a/b*c~d_e-f%", "<default>", "jürgen", "ユーザー", "'\"!()@:;&?#[]{}|\\^`$")
SAMPLES: list[Sample] = [
    ("broker", Registration(endpoints=(PLAIN, SECURE), timestamp_ms=NOW_MS, rack="r1"), BROKER, registration),
    ("broker", Registration(endpoints=(SECURE,), timestamp_ms=NOW_MS), BROKER, registration),
    ("broker", Registration(endpoints=(PLAIN,), timestamp_ms=NOW_MS, kept_since=1 << 40), BROKER, registration),
    ("broker", Registration(endpoints=(PLAIN,), timestamp_ms=NOW_MS, in_doubt=True), BROKER, registration),
    (
        "broker",
        Registration(endpoints=(Endpoint("A", "h", 1),), timestamp_ms=NOW_MS, jmx_port=99, features={"f": (1, 3)}),
        BROKER,
        registration,
    ),
    ("topic", TopicNode(topic_id=TOPIC_ID, partitions={0: Replicas(all=(1, 2)), 10: Replicas(all=(2,))}), TOPIC, topic),
    ("topic", TopicNode(topic_id=None, partitions={}), TOPIC, topic),
    (
        "topic",
        TopicNode(topic_id=TOPIC_ID, partitions={0: Replicas(all=(1, 2, 3), adding=(3,), removing=(1,))}),
        TOPIC,
        topic,
    ),
    ("topic", TopicNode(topic_id=TOPIC_ID, partitions={0: Replicas(all=(1, 2), leftover=(4, 3))}), TOPIC, topic),
    ("state", PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=7), STATE, state),
    ("state", PartitionState(leader=-1, leader_epoch=4, isr=(), controller_epoch=7, recovering=True), STATE, state),
    (
        "state",
        PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=7, isr_epochs={1: 1 << 40, 2: 9}),
        STATE,
        state,
    ),
    (
        "state",
        PartitionState(
            leader=1, leader_epoch=4, isr=(1,), controller_epoch=7, isr_epochs={1: 8, 3: 9}, eligible=(3, 2)
        ),
        STATE,
        state,
    ),
    ("controller", 5, lambda value: cluster_node.encode_controller(value, NOW_MS), cluster_node.decode_controller),
    ("epoch", 12, cluster_node.encode_controller_epoch, cluster_node.decode_controller_epoch),
    ("cluster", "MkU3OEVBNTcwNTJENDM2Qg", cluster_node.encode_cluster_id, cluster_node.decode_cluster_id),
    (
        "producer ids",
        ProducerIdBlock(broker_id=1, first=1000, last=1999),
        cluster_node.encode_producer_ids,
        cluster_node.decode_producer_ids,
    ),
    ("features", {"f": 3}, cluster_node.encode_features, cluster_node.decode_features),
    ("features", {}, cluster_node.encode_features, cluster_node.decode_features),
    ("config", {"retention.ms": "1", "é": "主题 \"'\\"}, config_node.encode_config, config),
    ("config", {}, config_node.encode_config, config),
    ("config change", "topics/t", notification_node.encode_config_change, notification_node.decode_config_change),
    ("acls", RULES, acl_node.encode_acls, acls),
    ("acl change", ORDERS, acl_node.encode_acl_change, partial(acl_node.decode_acl_change, PatternKind.LITERAL)),
    (
        "prefixed acl change",
        ResourcePattern(ResourceKind.TRANSACTIONAL_ID, "pay:ments", PatternKind.PREFIXED),
        acl_node.encode_acl_change,
        partial(acl_node.decode_acl_change, PatternKind.PREFIXED),
    ),
    ("log dir", 4, notification_node.encode_log_dir_event, notification_node.decode_log_dir_event),
]


@pytest.mark.parametrize(("kind", "value", "encode", "decode"), SAMPLES)
def test_a_node_reads_back_as_it_was_written(
    kind: str, value: Any, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]
) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize("decode", {sample[0]: sample[3] for sample in SAMPLES}.values())
@pytest.mark.parametrize("data", [b"\xff", b"{", b"[]", b"null", b"{}", b'{"version":1}', b'{"version":"x","isr":3}'])
def test_nonsense_has_one_error(decode: Callable[[bytes], Any], data: bytes) -> None:
    with pytest.raises(CorruptNodeError):
        decode(data)


def test_nodes_of_older_brokers_are_read() -> None:
    assert topic(b'{"version":1,"partitions":{"0":[1]}}') == TopicNode(
        topic_id=None, partitions={0: Replicas(all=(1,))}
    )
    assert cluster_node.decode_controller(b'{"version":1,"brokerid":3,"timestamp":"1"}') == 3
    change = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert notification_node.decode_config_change(change) == "topics/t"
    assert config(b"") == {}
    assert cluster_node.decode_features(b'{"version":1,"status":0,"features":{}}') == {}
    with pytest.raises(CorruptNodeError, match=r"before 0\.10"):
        registration(b'{"version":1,"host":"h","port":1,"jmx_port":-1,"timestamp":"1"}')


@pytest.mark.parametrize("epochs", ["null", "7", "[1]", '"x"', '{"1":"5","2":true,"7":3,"x":4}', '{"1":null,"2":1.5}'])
def test_epochs_that_are_none_leave_the_state_as_it_is(epochs: str) -> None:
    plain = PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=7)
    found = json.loads(STATE(plain)) | {"ixion_isr_epochs": json.loads(epochs)}
    assert state(json.dumps(found).encode()) == plain


@pytest.mark.parametrize("given", ["null", "7", '"x"', "{}", '["2",true,null,[3],1]'])
def test_lists_that_name_no_broker_leave_the_node_as_it_is(given: str) -> None:
    plain = PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=7)
    found = json.loads(STATE(plain)) | {"ixion_eligible": json.loads(given)}
    assert state(json.dumps(found).encode()) == plain
    moved = TopicNode(topic_id=TOPIC_ID, partitions={0: Replicas(all=(1, 2))})
    for leftover in (json.loads(given), {"0": json.loads(given), "x": 1}):
        found = json.loads(TOPIC(moved)) | {"ixion_leftover_replicas": leftover}
        assert topic(json.dumps(found).encode()) == moved


def test_names_of_users_are_encoded_as_kafka_does() -> None:
    """An own encoding would make a second node for a user that Kafka's tools have written, or miss it."""
    encoded = [paths.sanitized(name) for name in NAMES]
    assert encoded[:3] == ["al.ice", "CN%3Dal%20ice%2CO%3Dx.y%2B1", "a%2Fb%2Ac%7Ed_e-f%25"]
    assert [paths.plain(name) for name in encoded] == list(NAMES)
    assert [paths.sanitized(name) for name in (".", "..")] == ["%2E", "%2E%2E"]  # a tree has no such nodes


@pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="the same in both runs; done in the compiled one"
)
def test_apache_kafka_reads_every_node_and_writes_the_same() -> None:
    jars = need("kafka-3.9.1")
    command = java_command("NodeOracle", classpath=f"{compile_java(SOURCE, jars)}:{jars}", options=[*QUICK, "-Xmx128m"])
    ours = [(kind, encode(value)) for kind, value, encode, _ in SAMPLES]
    ours += [("name", paths.sanitized(name).encode()) for name in NAMES]
    samples = [*ours[: len(SAMPLES)], *(("name", name.encode()) for name in NAMES)]
    asked = b"".join(kind.encode() + b"\t" + data + b"\n" for kind, data in samples)
    done = subprocess.run(command, input=asked, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers = [tuple(line.split(b"\t", 1)) for line in done.stdout.splitlines()]
    base = [path.decode() for kind, path in answers if kind == b"base"]
    assert sorted(base) == sorted(paths.BASE)
    theirs = [(kind.decode(), data) for kind, data in answers if kind != b"base"]
    assert [kind for kind, _ in theirs] == [kind for kind, _ in ours]
    for (kind, written), (_, again) in zip(ours, theirs, strict=True):
        assert comparable(kind, again) == comparable(kind, written)


def comparable(kind: str, data: bytes) -> Any:
    if kind in ("acl change", "name"):
        return data  # no JSON
    members = json.loads(data)
    if kind == "acls":
        members["acls"].sort(key=str)
    if kind == "broker":
        assert members.pop("timestamp").isdigit()  # Kafka writes the present
        members.pop("ixion_kept_since", None)  # ours: Kafka ignores it
        members.pop("ixion_in_doubt", None)
    if kind == "state":
        members.pop("ixion_isr_epochs", None)  # likewise
        members.pop("ixion_eligible", None)
    if kind == "topic":
        members.pop("ixion_leftover_replicas", None)
    if kind == "isr":
        members["partitions"].sort(key=lambda partition: partition["topic"])  # a set to Kafka
    if kind == "controller":
        assert members["brokerid"] == 5
    return members
