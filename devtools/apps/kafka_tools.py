"""Kafka's own command line tools, each as a process of its own, as the scripts in Kafka's bin/ start it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from devtools import jars
from devtools.apps.app import TIMEOUT_S
from devtools.jvm import QUICK, java_command

TOOLS: Final = "org.apache.kafka.tools."
TOPICS: Final = f"{TOOLS}TopicCommand"
PRODUCER: Final = f"{TOOLS}ConsoleProducer"
CONSUMER: Final = f"{TOOLS}consumer.ConsoleConsumer"
GROUPS: Final = f"{TOOLS}consumer.group.ConsumerGroupCommand"
CONFIGS: Final = "kafka.admin.ConfigCommand"
ACLS: Final = f"{TOOLS}AclCommand"
CLUSTER: Final = f"{TOOLS}ClusterTool"

# tool, its words, what it must print (None: nothing is looked for)
SCENARIO: Final = (
    (TOPICS, "--create --topic tools --partitions 2 --config retention.ms=100000", "Created topic tools."),
    (TOPICS, "--list", "tools"),
    (TOPICS, "--describe --topic tools", "PartitionCount: 2"),
    (TOPICS, "--alter --topic tools --partitions 3", None),
    (PRODUCER, "--topic tools --property parse.key=true --property key.separator=:", None),
    (CONSUMER, "--topic tools --from-beginning --max-messages 3 --group tools --property print.key=true", "k1\tone"),
    (GROUPS, "--list", "tools"),
    (GROUPS, "--describe --group tools", "tools"),
    (GROUPS, "--describe --group tools --state", "Empty"),
    (GROUPS, "--reset-offsets --group tools --topic tools --to-earliest --execute", "tools"),
    (GROUPS, "--delete --group tools", "was successful"),
    (f"{TOOLS}GetOffsetShell", "--topic tools", "tools:0:"),
    (f"{TOOLS}DeleteRecordsCommand", "--offset-json-file records.json", "Records delete operation completed"),
    (CONFIGS, "--entity-type topics --entity-name tools --describe", "retention.ms=100000"),
    (CONFIGS, "--entity-type topics --entity-name tools --alter --add-config max.message.bytes=2000000", "Completed"),
    (CONFIGS, "--entity-type brokers --entity-default --describe", "Default configs"),
    (f"{TOOLS}LogDirsCommand", "--describe --topic-list tools", '"partition":"tools-0"'),
    (f"{TOOLS}TransactionsCommand", "list", "TransactionalId"),
    (f"{TOOLS}TransactionsCommand", "find-hanging --topic tools", None),
    (ACLS, "--list", "SecurityDisabledException"),
    (f"{TOOLS}FeatureCommand", "describe", "metadata.version|group.version"),
    (CLUSTER, "", "Cluster ID:"),
    (f"{TOOLS}BrokerApiVersionsCommand", "", "Produce(0)"),
    (f"{TOOLS}LeaderElectionCommand", "--election-type preferred --all-topic-partitions", None),
    (f"{TOOLS}reassign.ReassignPartitionsCommand", "--list", "No partition reassignments found"),
    (
        f"{TOOLS}ProducerPerformance",
        "--topic tools --num-records 1000 --record-size 100 --throughput -1",
        "1000 records",
    ),
    (f"{TOOLS}ConsumerPerformance", "--topic tools --messages 1000", "start.time"),
    (TOPICS, "--delete --topic tools", None),
)
REFUSES: Final = (ACLS,)  # these end with an error where there is no authorizer, as with Kafka
WHERE: Final = {  # what stands before the broker's address; with most it is --bootstrap-server
    f"{TOOLS}ProducerPerformance": "--producer-props bootstrap.servers=",
    CLUSTER: "cluster-id --bootstrap-server ",
}


def kafka_tools(bootstrap: str, folder: Path) -> None:
    classpath = jars.classpath("kafka-4.3.0")
    (folder / "records.json").write_text('{"partitions": [{"topic": "tools", "partition": 0, "offset": -1}]}')
    faults = []
    for tool, words, wanted in SCENARIO:
        where = WHERE.get(tool, "--bootstrap-server ") + bootstrap
        command = java_command(tool, *f"{where} {words}".split(), classpath=classpath, options=["-Xmx256m", *QUICK])
        done = subprocess.run(
            command,
            input="k1:one\nk2:two\nk3:three\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            timeout=TIMEOUT_S,
            check=False,
        )
        name = tool.rpartition(".")[2]
        print(
            f"  {name} {words}\n" + "".join(f"    {line}\n" for line in done.stdout.splitlines()[:6]),
            end="",
            flush=True,
        )
        found = wanted is None or any(each in done.stdout for each in wanted.split("|"))
        if not found or (done.returncode and tool not in REFUSES):
            faults.append(f"{name} {words}: exit code {done.returncode}: {done.stdout[-700:]}")
    if faults:
        raise RuntimeError("\n".join(faults))
