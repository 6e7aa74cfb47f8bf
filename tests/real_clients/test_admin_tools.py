"""Kafka 4.3's own command line tools administer the broker, and print what they print about a Kafka.

With the compiled package only: what goes over the wire is the same both ways, which the tests of the APIs see to.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.testing.broker import Broker
from tests.apis.filling import fill
from tests.real_clients.toolbox import ToolBox

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="runs with the compiled package, see the module"
)

CONFIG = "kafka.admin.ConfigCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


class Tools:
    def __init__(self, box: ToolBox, broker: Broker, directory: Path) -> None:
        self._box = box
        self.broker = broker
        self.directory = directory
        self.paths = [str(directory / "one"), str(directory / "two")]

    def __call__(self, tool: str, *words: str, code: int = 0) -> str:
        """What the tool prints; `code` is how it must end."""
        found, printed = self._box.run(tool, "--bootstrap-server", self.broker.bootstrap, *words)
        assert found == code, printed
        return printed

    def bare(self, tool: str, *words: str) -> str:
        found, printed = self._box.run(tool, *words)
        assert found == 0, printed
        return printed

    def file(self, name: str, content: object) -> str:
        path = self.directory / name
        path.write_text(json.dumps(content))
        return str(path)


@pytest.fixture
def tools(box: ToolBox, tmp_path: Path) -> Iterator[Tools]:
    paths = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    with Broker({"broker.id": 5, "log.dirs": paths}) as broker:
        yield Tools(box, broker, tmp_path)


def test_topics(tools: Tools) -> None:
    create = ("--create", "--topic", "orders", "--partitions", "3")
    assert tools("TopicCommand", *create, "--config", "retention.ms=1000") == "Created topic orders."
    assert "already exists" in tools("TopicCommand", *create, code=1)
    assert tools("TopicCommand", *create, "--if-not-exists") == ""
    # The tool itself knows Kafka's topic settings; what it lets pass, the broker has to know.
    wrong = tools("TopicCommand", "--create", "--topic", "wrong", "--config", "retention.ms=soon", code=1)
    assert "retention.ms" in wrong
    assert tools("TopicCommand", "--list") == "orders"
    described = tools("TopicCommand", "--describe", "--topic", "orders").splitlines()
    assert re.match(
        r"Topic: orders\tTopicId: \S{22}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: .*retention.ms=1000",
        described[0],
    )
    assert described[1] == "\tTopic: orders\tPartition: 0\tLeader: 5\tReplicas: 5\tIsr: 5\tElr: \tLastKnownElr: "
    assert len(described) == 4
    tools("TopicCommand", "--alter", "--topic", "orders", "--partitions", "4")
    assert "would not be an increase" in tools(
        "TopicCommand", "--alter", "--topic", "orders", "--partitions", "2", code=1
    )
    assert "PartitionCount: 4" in tools("TopicCommand", "--describe")
    assert tools("TopicCommand", "--describe", "--under-replicated-partitions") == ""
    assert tools("TopicCommand", "--describe", "--unavailable-partitions") == ""
    tools("TopicCommand", "--delete", "--topic", "orders")
    assert tools("TopicCommand", "--list") == ""
    assert "does not exist" in tools("TopicCommand", "--delete", "--topic", "orders", code=1)


def test_records_and_offsets(tools: Tools) -> None:
    tools("TopicCommand", "--create", "--topic", "load", "--partitions", "2")
    load = ("--topic", "load", "--num-records", "500", "--record-size", "100", "--throughput", "-1")
    sent = tools("ProducerPerformance", *load, "--command-property", "acks=all")
    assert sent.startswith("500 records sent")

    def offsets(at: str) -> list[int]:
        lines = tools("GetOffsetShell", "--topic", "load", "--time", at).splitlines()
        assert [line.rpartition(":")[0] for line in lines] == ["load:0", "load:1"]
        return [int(line.rpartition(":")[2]) for line in lines]

    for number in range(2):
        fill(tools.broker.bootstrap, "load", number, count=1)  # the tool may have sent all to one partition
    assert offsets("earliest") == [0, 0]
    latest = offsets("latest")
    assert sum(latest) == 502
    assert offsets("max-timestamp") == [end - 1 for end in latest]
    partitions = [
        {"topic": "load", "partition": 0, "offset": 0},
        {"topic": "load", "partition": 1, "offset": -1},
    ]
    asked = tools.file("delete.json", {"partitions": partitions, "version": 1})
    deleted = tools("DeleteRecordsCommand", "--offset-json-file", asked)
    last = latest[1]
    assert f"partition: load-1\tlow_watermark: {last}" in deleted
    assert offsets("earliest") == [0, last]


def test_settings(tools: Tools) -> None:
    tools("TopicCommand", "--create", "--topic", "t")
    done = "Completed updating config for topic t."
    add = ("--alter", "--topic", "t", "--add-config")
    assert tools(CONFIG, *add, "cleanup.policy=[compact,delete],max.message.bytes=2000") == done
    described = tools(CONFIG, "--describe", "--topic", "t")
    assert (
        "cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete,"
        " DEFAULT_CONFIG:log.cleanup.policy=delete}" in described
    )
    assert "max.message.bytes=2000 " in described
    assert tools(CONFIG, "--alter", "--topic", "t", "--delete-config", "max.message.bytes") == done
    assert "max.message.bytes" not in tools(CONFIG, "--describe", "--topic", "t")
    assert "did you mean 'max.message.bytes'?" in tools(CONFIG, *add, "max.message.bites=3", code=1)

    tools(CONFIG, "--alter", "--broker", "5", "--add-config", "log.retention.ms=5000")
    tools(CONFIG, "--alter", "--broker-defaults", "--add-config", "log.retention.ms=6000")
    synonyms = "DYNAMIC_BROKER_CONFIG:log.retention.ms=5000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=6000"
    assert synonyms in tools(CONFIG, "--describe", "--broker", "5")
    assert synonyms in tools(CONFIG, "--describe", "--entity-type", "brokers")
    assert "log.retention.ms=6000" in tools(CONFIG, "--describe", "--broker-defaults")
    assert "left as it is while the broker runs" in tools(
        CONFIG, "--alter", "--broker", "5", "--add-config", "broker.id=7", code=1
    )
    everything = tools(CONFIG, "--describe", "--broker", "5", "--all")
    assert "num.io.threads=8 sensitive=false synonyms={DEFAULT_CONFIG:num.io.threads=8}" in everything

    tools(CONFIG, "--alter", "--group", "g", "--add-config", "consumer.session.timeout.ms=50000")
    assert "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000" in tools(CONFIG, "--describe", "--group", "g")
    assert "consumer.session.timeout.ms=50000" in tools(CONFIG, "--describe", "--entity-type", "groups")

    tools(CONFIG, "--alter", "--broker-logger", "5", "--add-config", "ixion.broker.network=ERROR")
    assert "ixion.broker.network=ERROR" in tools(CONFIG, "--describe", "--broker-logger", "5")
    tools(CONFIG, "--alter", "--broker-logger", "5", "--delete-config", "ixion.broker.network")
    assert "ixion.broker.network=ERROR" not in tools(CONFIG, "--describe", "--broker-logger", "5")


def test_the_cluster(tools: Tools) -> None:
    features = tools("FeatureCommand", "describe")
    assert re.search(
        r"Feature: metadata.version\s+SupportedMinVersion: 3.3-IV3\s+SupportedMaxVersion: 4.3-IV0", features
    )
    tools("FeatureCommand", "downgrade", "--feature", "transaction.version=1")
    assert re.search(r"transaction.version .* FinalizedVersionLevel: 1\s", tools("FeatureCommand", "describe"))
    tools("FeatureCommand", "upgrade", "--feature", "transaction.version=2")
    assert "levels 0 to 2 are supported" in tools(
        "FeatureCommand", "upgrade", "--feature", "transaction.version=7", code=1
    )

    status = tools("MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId:\s+5\n", status)
    assert f'CurrentVoters:          [{{"id": 5, "endpoints": ["PLAINTEXT://{tools.broker.bootstrap}"]}}]' in status
    replication = tools("MetadataQuorumCommand", "describe", "--replication").splitlines()
    assert replication[1].split()[0] == "5"
    assert replication[1].split()[-1] == "Leader"

    endpoints = tools.bare("ClusterTool", "list-endpoints", "--bootstrap-server", tools.broker.bootstrap)
    assert re.search(r"\n5 +127.0.0.1 +\d+ +null +unfenced +broker", endpoints)
    versions = tools("BrokerApiVersionsCommand")
    assert "CreateTopics(19): 2 to 7 [usable: 7]" in versions
    assert "DescribeLogDirs(35): 1 to 5 [usable: 5]" in versions
    assert tools("ClientMetricsCommand", "--list") == ""


def test_leaders_and_places(tools: Tools) -> None:
    tools("TopicCommand", "--create", "--topic", "t", "--partitions", "2")
    tools.bare(
        "ProducerPerformance",
        *("--topic", "t", "--num-records", "100", "--record-size", "100", "--throughput", "-1"),
        *("--bootstrap-server", tools.broker.bootstrap),
    )
    assert tools("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions") == ""
    elected = tools("LeaderElectionCommand", "--election-type", "preferred", "--topic", "t", "--partition", "0")
    assert elected == "Valid replica already elected for partitions t-0"

    def places() -> dict[str, str]:
        told = json.loads(tools("LogDirsCommand", "--describe", "--topic-list", "t").splitlines()[-1])
        (broker,) = told["brokers"]
        assert broker["broker"] == 5
        return {
            each["partition"]: place["logDir"]
            for place in broker["logDirs"]
            for each in place["partitions"]
            if place["error"] is None and not each["isFuture"]
        }

    before = places()
    assert sorted(before.values()) == sorted(tools.paths)
    assert tools(REASSIGN, "--list") == "No partition reassignments found."
    moves = [
        {"topic": "t", "partition": number, "replicas": [5], "log_dirs": [before[f"t-{1 - number}"]]}
        for number in range(2)
    ]
    plan = tools.file("plan.json", {"version": 1, "partitions": moves})
    slowly = ("--throttle", "100000000", "--replica-alter-log-dirs-throttle", "100000000")
    begun = tools(REASSIGN, "--execute", "--reassignment-json-file", plan, *slowly)
    assert begun.count("Successfully started moving log directory") == 2
    while "is still in progress" in (verified := tools(REASSIGN, "--verify", "--reassignment-json-file", plan)):
        pass
    assert verified.count("completed successfully.") == 2
    assert places() == {"t-0": before["t-1"], "t-1": before["t-0"]}
    elsewhere = tools.file(
        "elsewhere.json", {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [6]}]}
    )
    assert "6" in tools(REASSIGN, "--execute", "--reassignment-json-file", elsewhere, code=1)


def test_delayed_delivery(box: ToolBox, tmp_path: Path) -> None:
    """kafka-topics knows Kafka's own topic settings only: what it cannot set, delivery.delay.topics decides by name."""
    with Broker({"broker.id": 5, "delivery.delay.topics": r"reminders-.*:record;.*-retry:fixed:60000"}) as broker:
        tools = Tools(box, broker, tmp_path)
        mode = "delivery.delay.mode=record"
        refused = tools("TopicCommand", "--create", "--topic", "t", "--config", mode, code=1)
        assert "Unknown topic config name: delivery.delay.mode" in refused
        for name in ("reminders-1", "orders-retry", "plain"):
            tools("TopicCommand", "--create", "--topic", name)
        assert mode in tools("TopicCommand", "--describe", "--topic", "reminders-1")
        rule = "synonyms={STATIC_BROKER_CONFIG:delivery.delay.topics="
        described = tools(CONFIG, "--describe", "--topic", "orders-retry", "--all").splitlines()
        (line,) = [line for line in described if "delivery.delay.ms=" in line]
        assert line.startswith(f"  delivery.delay.ms=60000 sensitive=false {rule}")
        alter = ("--alter", "--topic", "plain")
        added = f"{mode},delivery.delay.max.ms=3600000"
        assert "Completed" in tools(CONFIG, *alter, "--add-config", added)
        described = tools(CONFIG, "--describe", "--topic", "plain").splitlines()
        assert [line.split()[0] for line in described[1:]] == ["delivery.delay.max.ms=3600000", mode]
        assert "Completed" in tools(CONFIG, *alter, "--delete-config", "delivery.delay.max.ms")
        assert "delivery.delay.max.ms" not in tools(CONFIG, "--describe", "--topic", "plain")
        for bad, reason in (
            ("delivery.delay.mode=sometimes", "one of off, fixed, record"),
            ("delivery.delay.mode=fixed", "unless delivery.delay.ms is set to 1 or more"),
            ("delivery.delay.max.ms=soon", "a whole number of 64 bits"),
            ("delivery.delay.pending.max=-5", "at least 0"),
            ("delivery.delay.nonsense=1", "did you mean 'delivery.delay.mode'?"),
        ):
            assert reason in tools(CONFIG, *alter, "--add-config", bad, code=1)
        assert tools(CONFIG, "--describe", "--topic", "plain").splitlines()[1].split()[0] == mode
