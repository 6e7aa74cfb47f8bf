"""The same requests to Apache Kafka 4.3.0 and to ixion: the codes of their answers are the same, in every corner.

With the compiled package only: it starts a JVM, and what is compared is the same both ways.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages import k20_delete_topics as k20
from ixion.language.protocol.messages import k21_delete_records as k21
from ixion.language.protocol.messages import k23_offset_for_leader_epoch as k23
from ixion.language.protocol.messages import k32_describe_configs as k32
from ixion.language.protocol.messages import k34_alter_replica_log_dirs as k34
from ixion.language.protocol.messages import k37_create_partitions as k37
from ixion.language.protocol.messages import k43_elect_leaders as k43
from ixion.language.protocol.messages import k45_alter_partition_reassignments as k45
from ixion.language.protocol.messages import k57_update_features as k57
from ixion.language.protocol.messages import k74_list_config_resources as k74
from ixion.language.protocol.messages import k75_describe_topic_partitions as k75
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.testing.broker import Broker
from tests.apis.asking import Asking
from tests.apis.filling import fill
from tests.apis.settings import APPEND, DELETE, SET, SUBTRACT, Edits, change
from tests.apis.test_k19_create_topics import wish

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="runs with the compiled package, see the module"
)

NODE = 1
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
Story = Callable[[Asking], object]


def create(*topics: CreatableTopic, version: int = 7) -> Story:
    def ask(asking: Asking) -> object:
        request = CreateTopicsRequest(topics=topics, timeout_ms=20_000)
        found = asking.ask(request, CreateTopicsResponse, version).topics
        return sorted((each.name, each.error_code, each.num_partitions, each.replication_factor) for each in found)

    return ask


def delete(*topics: tuple[str | None, bytes]) -> Story:
    def ask(asking: Asking) -> object:
        states = tuple(k20.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics)
        request = k20.DeleteTopicsRequest(topics=states, topic_names=(), timeout_ms=20_000)
        found = asking.ask(request, k20.DeleteTopicsResponse).responses
        return sorted((each.name or "", each.error_code) for each in found)

    return ask


def delete_records(topic: str, *offsets: tuple[int, int]) -> Story:
    def ask(asking: Asking) -> object:
        wanted = tuple(k21.DeleteRecordsPartition(partition_index=number, offset=offset) for number, offset in offsets)
        request = k21.DeleteRecordsRequest(
            topics=(k21.DeleteRecordsTopic(name=topic, partitions=wanted),), timeout_ms=20_000
        )
        (found,) = asking.ask(request, k21.DeleteRecordsResponse).topics
        return sorted((each.partition_index, each.low_watermark, each.error_code) for each in found.partitions)

    return ask


def epoch_end(topic: str, number: int, known: int, epoch: int) -> Story:
    def ask(asking: Asking) -> object:
        wanted = k23.OffsetForLeaderPartition(partition=number, current_leader_epoch=known, leader_epoch=epoch)
        request = k23.OffsetForLeaderEpochRequest(
            replica_id=-1, topics=(k23.OffsetForLeaderTopic(topic=topic, partitions=(wanted,)),)
        )
        (found,) = asking.ask(request, k23.OffsetForLeaderEpochResponse).topics
        return [(each.error_code, each.leader_epoch, each.end_offset) for each in found.partitions]

    return ask


def describe(kind: int, name: str, *keys: str) -> Story:
    def ask(asking: Asking) -> object:
        wanted = k32.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
        request = k32.DescribeConfigsRequest(resources=(wanted,), include_synonyms=True)
        (found,) = asking.ask(request, k32.DescribeConfigsResponse).results
        entries = sorted(found.configs, key=lambda each: each.name) if keys else []
        return found.error_code, [
            (
                *(each.name, each.value, each.config_source, each.read_only, each.is_sensitive, each.config_type),
                [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
            )
            for each in entries
        ]

    return ask


def alter(kind: int, name: str, *edits: tuple[str, int, str | None]) -> Story:
    wanted: Edits = edits
    return lambda asking: change(asking, kind, name, wanted)[0]


def move(path: str, topic: str, number: int) -> Story:
    def ask(asking: Asking) -> object:
        topics = (k34.AlterReplicaLogDirTopic(name=topic, partitions=(number,)),)
        request = k34.AlterReplicaLogDirsRequest(dirs=(k34.AlterReplicaLogDir(path=path, topics=topics),))
        (found,) = asking.ask(request, k34.AlterReplicaLogDirsResponse).results
        return [each.error_code for each in found.partitions]

    return ask


def grow(name: str, count: int, assignment: list[tuple[int, ...]] | None = None) -> Story:
    def ask(asking: Asking) -> object:
        placed = None if assignment is None else tuple(k37.CreatePartitionsAssignment(broker_ids=a) for a in assignment)
        wanted = k37.CreatePartitionsTopic(name=name, count=count, assignments=placed)
        request = k37.CreatePartitionsRequest(topics=(wanted,), timeout_ms=20_000, validate_only=False)
        return [each.error_code for each in asking.ask(request, k37.CreatePartitionsResponse).results]

    return ask


def elect(kind: int, topic: str, *numbers: int) -> Story:
    def ask(asking: Asking) -> object:
        wanted = (k43.TopicPartitions(topic=topic, partitions=numbers),)
        request = k43.ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=20_000)
        found = asking.ask(request, k43.ElectLeadersResponse)
        codes = [each.error_code for topic in found.replica_election_results for each in topic.partition_result]
        return found.error_code, codes

    return ask


def reassign(topic: str, number: int, replicas: tuple[int, ...] | None) -> Story:
    def ask(asking: Asking) -> object:
        wanted = (k45.ReassignablePartition(partition_index=number, replicas=replicas),)
        request = k45.AlterPartitionReassignmentsRequest(topics=(k45.ReassignableTopic(name=topic, partitions=wanted),))
        found = asking.ask(request, k45.AlterPartitionReassignmentsResponse)
        return found.error_code, [each.error_code for topic in found.responses for each in topic.partitions]

    return ask


def feature(name: str, level: int, kind: int) -> Story:
    def ask(asking: Asking) -> object:
        update = k57.FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=False, upgrade_type=kind)
        found = asking.ask(k57.UpdateFeaturesRequest(feature_updates=(update,)), k57.UpdateFeaturesResponse)
        return found.error_code

    return ask


def resources(*kinds: int) -> Story:
    def ask(asking: Asking) -> object:
        found = asking.ask(k74.ListConfigResourcesRequest(resource_types=kinds), k74.ListConfigResourcesResponse)
        return found.error_code, sorted((each.resource_type, each.resource_name) for each in found.config_resources)

    return ask


def page(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Story:
    def ask(asking: Asking) -> object:
        start = None if cursor is None else k75.Cursor(topic_name=cursor[0], partition_index=cursor[1])
        request = k75.DescribeTopicPartitionsRequest(
            topics=tuple(k75.TopicRequest(name=name) for name in names), response_partition_limit=limit, cursor=start
        )
        found = asking.ask(request, k75.DescribeTopicPartitionsResponse)
        following = found.next_cursor
        topics = [
            (topic.error_code, topic.name, topic.is_internal, topic.topic_authorized_operations, len(topic.partitions))
            for topic in found.topics
        ]
        return topics, None if following is None else (following.topic_name, following.partition_index)

    return ask


STORIES: list[tuple[str, Story]] = [
    ("topics", create(wish("a", 2), wish("b", -1, -1), wish("c", 1, 1, {"cleanup.policy": "compact"}))),
    (
        "again, wrong and alike",
        create(wish("a"), wish("x", 0), wish("y", 1, 9), wish("z", 1, 0), wish("a b"), wish("")),
    ),
    ("dots", create(wish("d.e"))),
    ("like dots", create(wish("d_e"))),
    ("twice", create(wish("twice"), wish("twice", 2))),
    ("old", create(wish("old"), version=2)),
    ("null setting", create(wish("s", config={"retention.ms": None}))),
    ("bad setting", create(wish("s", config={"retention.ms": "soon"}))),
    ("unknown setting", create(wish("s", config={"retention.mss": "1"}))),
    ("placed", create(wish("p", -1, -1, assignment=[(0, (NODE,)), (1, (NODE,))]))),
    ("placed and counted", create(wish("q", 2, -1, assignment=[(0, (NODE,))]))),
    ("placed with a hole", create(wish("q", -1, -1, assignment=[(1, (NODE,))]))),
    ("placed twice", create(wish("q", -1, -1, assignment=[(0, (NODE,)), (0, (NODE,))]))),
    ("placed nowhere", create(wish("q", -1, -1, assignment=[(0, ())]))),
    ("placed elsewhere", create(wish("q", -1, -1, assignment=[(0, (99,))]))),
    ("metadata", create(wish("__cluster_metadata"))),
    ("offsets", create(wish("__consumer_offsets", 2))),
    ("records", lambda asking: None),  # ten for a-0, three for c-0, see the test
    ("delete records", delete_records("a", (0, 3), (1, 0), (7, 0))),
    ("delete fewer", delete_records("a", (0, 1))),
    ("delete too many", delete_records("a", (0, 11))),
    ("delete below zero", delete_records("a", (0, -2))),
    ("delete all", delete_records("a", (0, -1))),
    ("delete compacted", delete_records("c", (0, 1))),
    ("delete internal", delete_records("__consumer_offsets", (0, 0))),
    *((f"epoch {known} {epoch}", epoch_end("a", 0, known, epoch)) for known in (-1, 0, 5) for epoch in (-1, 0, 3)),
    ("epoch of nothing", epoch_end("none", 0, -1, 0)),
    ("set", alter(TOPIC, "a", ("retention.ms", SET, "1000"), ("segment.ms", SET, "5"))),
    ("unset", alter(TOPIC, "a", ("segment.ms", DELETE, None), ("never.was", DELETE, None))),
    ("append", alter(TOPIC, "a", ("cleanup.policy", APPEND, "compact"))),
    ("see", describe(TOPIC, "a", "retention.ms", "segment.ms", "cleanup.policy", "max.message.bytes")),
    ("subtract", alter(TOPIC, "a", ("cleanup.policy", SUBTRACT, "delete"))),
    ("append to a number", alter(TOPIC, "a", ("retention.ms", APPEND, "1"))),
    ("set null", alter(TOPIC, "a", ("retention.ms", SET, None))),
    ("set wrong", alter(TOPIC, "a", ("retention.ms", SET, "soon"))),
    ("set unknown", alter(TOPIC, "a", ("no.such", SET, "1"))),
    ("set twice", alter(TOPIC, "a", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))),
    ("set for nothing", alter(TOPIC, "none", ("retention.ms", SET, "1"))),
    ("set for a bad name", alter(TOPIC, "a b", ("retention.ms", SET, "1"))),
    ("set for no name", alter(TOPIC, "", ("retention.ms", SET, "1"))),
    ("broker", alter(BROKER, str(NODE), ("log.retention.ms", SET, "5000"), ("some.plugin", SET, "1"))),
    ("brokers", alter(BROKER, "", ("log.retention.ms", SET, "6000"))),
    ("fixed", alter(BROKER, "", ("log.retention.hours", SET, "6"))),
    ("wrong for a broker", alter(BROKER, str(NODE), ("log.retention.ms", SET, "soon"))),
    ("another broker", alter(BROKER, "77", ("log.retention.ms", SET, "1"))),
    ("no broker", alter(BROKER, "one", ("log.retention.ms", SET, "1"))),
    ("see the broker", describe(BROKER, str(NODE), "log.retention.ms", "some.plugin", "num.io.threads")),
    ("see the brokers", describe(BROKER, "", "log.retention.ms")),
    ("see a topic", describe(TOPIC, "b", "retention.ms")),
    ("see nothing", describe(TOPIC, "none")),
    ("see a bad name", describe(TOPIC, "")),
    ("see another", describe(BROKER, "77")),
    ("see no loggers", describe(LOGGER, "")),
    ("group", alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))),
    ("see the group", describe(GROUP, "g", "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")),
    ("group too short", alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "1"))),
    ("group unknown", alter(GROUP, "g", ("no.such", SET, "1"))),
    ("group unnamed", alter(GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))),
    ("root", alter(LOGGER, str(NODE), ("root", DELETE, None))),
    ("loud", alter(LOGGER, str(NODE), ("root", SET, "LOUD"))),
    ("no logger", alter(LOGGER, str(NODE), ("no.such.logger", SET, "INFO"))),
    ("type", alter(99, "x")),
    ("grow", grow("b", 3)),
    ("not grow", grow("b", 3)),
    ("shrink", grow("b", 1)),
    ("grow nothing", grow("none", 2)),
    ("grow placed", grow("b", 4, [(NODE,)])),
    ("grow elsewhere", grow("b", 5, [(99,)])),
    ("grow unplaced", grow("b", 5, [])),
    ("grow twice there", grow("b", 5, [(NODE, NODE)])),
    ("elect", elect(0, "a", 0, 9)),
    ("elect any", elect(1, "a", 0)),
    ("elect nothing", elect(0, "none", 0)),
    ("elect how", elect(7, "a", 0)),
    ("reassign", reassign("a", 0, (NODE,))),
    ("reassign elsewhere", reassign("a", 0, (99,))),
    ("reassign nowhere", reassign("a", 0, ())),
    ("reassign not", reassign("a", 0, None)),
    ("reassign nothing", reassign("none", 0, (NODE,))),
    ("move nowhere", move("/no/such/place", "a", 0)),
    ("feature down", feature("transaction.version", 1, 1)),
    ("feature safely down", feature("transaction.version", 1, 2)),
    ("feature down and up", feature("transaction.version", 2, 2)),
    ("feature up", feature("transaction.version", 2, 1)),
    ("feature too high", feature("transaction.version", 9, 1)),
    ("feature unknown", feature("no.such", 1, 1)),
    ("resources", resources()),
    ("some resources", resources(BROKER, GROUP)),
    ("no such resources", resources(99)),
    ("pages", page(limit=2)),
    ("next page", page(limit=2, cursor=("a", 1))),
    ("some", page("b", "a", "none", "a b")),
    ("beyond", page(cursor=("zz", 0))),
    ("bad cursor", page("a", "b", cursor=("none", 0))),
    ("delete", delete(("old", ZERO_ID), ("none", ZERO_ID), (None, ZERO_ID))),
    ("delete twice", delete(("a", ZERO_ID), ("a", ZERO_ID))),
    ("delete who knows", delete((None, b"1234567890123456"))),
]


# What only looks can be asked again: Kafka's brokers learn of a change a moment after it was answered.
LOOKS = ("see", "resources", "some", "pages", "next page", "beyond", "epoch")


def tell(bootstrap: str, expected: dict[str, object] | None = None) -> dict[str, object]:
    answers: dict[str, object] = {}
    with Asking(bootstrap) as asking:
        for name, story in STORIES:
            if name == "records":
                fill(bootstrap, "a", count=10)
                fill(bootstrap, "c", count=3, key=b"k")
            answers[name] = story(asking)
            end = time.monotonic() + 5
            while expected and name.startswith(LOOKS) and answers[name] != expected[name] and time.monotonic() < end:
                time.sleep(0.05)
                answers[name] = story(asking)
    return answers


def test_every_code_is_kafkas(tmp_path: Path) -> None:
    need("kafka-4.3.0")
    assert len({name for name, _ in STORIES}) == len(STORIES)
    with Broker({"broker.id": NODE}) as broker:
        ours = tell(broker.bootstrap)
    with RealKafka("4.3.0", tmp_path / "kafka", properties={"log.retention.hours": "-1"}) as kafka:
        theirs = tell(kafka.bootstrap, ours)
    assert ours == theirs
