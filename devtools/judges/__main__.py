"""`make judges`: three ixion brokers on a real ZooKeeper, and Apache Kafka's own programs that look at them.

    python -m devtools.judges                          # all
    python -m devtools.judges tree elections           # some
    python -m devtools.judges --zookeeper 3.8.4        # on another ZooKeeper

Each judge prints a line; the exit code is 1 if one of them objects. It takes a few minutes, most of them for JVMs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools import parts
from devtools.judges.rolling import KINDS, PARTITIONS, check, roll
from devtools.jvm import QUICK, compile_java, java_command, run_java
from devtools.kafka import free_port
from devtools.zookeeper import VERSION, RealZooKeeper
from ixion.testing import Broker

KAFKA: Final = "kafka-3.9.1"
TOPIC: Final = "judged"
MESSAGES: Final = 6_000
PATIENCE_S: Final = 120.0
HERE: Final = Path(__file__).parent
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": 6_000,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "min.insync.replicas": 2,
    "auto.leader.rebalance.enable": False,
    "controlled.shutdown.retry.backoff.ms": 500,
    "replica.lag.time.max.ms": 5_000,
    "replica.fetch.backoff.ms": 100,
}


class ObjectionError(AssertionError):
    """A judge has found something wrong."""


class Court:
    def __init__(self, connect: str, home: Path) -> None:
        self.connect = connect
        self.home = home
        self.classpath = parts.need(KAFKA)
        self.brokers = {
            number: Broker(
                {
                    "zookeeper.connect": connect,
                    "broker.id": number,
                    "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
                    **SETTINGS,
                },
                data=home / str(number),
            )
            for number in (1, 2, 3)
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values() if broker.running)

    def tool(self, main: str, *words: str) -> str:
        return run_java(main, "--bootstrap-server", self.bootstrap, *words, classpath=self.classpath)

    def prepare(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        until(lambda: len(admin.list_topics(timeout=30).brokers) == 3, "all brokers know each other")
        admin.create_topics([NewTopic(TOPIC, 6, 3)])[TOPIC].result(PATIENCE_S)
        self.healthy()
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True})
        for number in range(5_000):
            producer.produce(TOPIC, b"%d" % number)
        require(producer.flush(PATIENCE_S) == 0, "5,000 records are acknowledged")

    def leaders(self) -> list[int]:
        found = AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(TOPIC, timeout=30).topics[TOPIC]
        return [each.leader for _, each in sorted(found.partitions.items())]

    def healthy(self) -> None:
        def in_sync() -> bool:
            found = AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=30)
            partitions = [part for topic in found.topics.values() for part in topic.partitions.values()]
            return all(set(part.isrs) == set(part.replicas) and part.leader > 0 for part in partitions)

        until(in_sync, "all replicas are in sync")

    def restart(self, number: int) -> None:
        self.brokers[number].stop()
        self.brokers[number].start()
        self.healthy()


def tree(court: Court) -> str:
    """KafkaZkClient reads every node."""
    classes = compile_java(HERE / "java" / "TreeJudge.java", court.classpath)
    return run_java("TreeJudge", court.connect, classpath=f"{classes}:{court.classpath}").strip().splitlines()[-1]


def elections(court: Court) -> str:
    """LeaderElectionCommand gives leadership back to the preferred replicas."""
    before = court.leaders()
    court.restart(before[0])
    require(court.leaders() != before, "a stop has moved leaders")
    said = court.tool(
        "org.apache.kafka.tools.LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"
    )
    require("Successfully completed leader election" in said, said)
    until(lambda: court.leaders() == before, "the preferred replicas lead again")
    return f"leaders {before} again"


def moves(court: Court) -> str:
    """ReassignPartitionsCommand moves a partition with a throttle, and takes the throttle away."""
    plan = court.home / "plan.json"
    found = AdminClient({"bootstrap.servers": court.bootstrap}).list_topics(TOPIC, timeout=30).topics[TOPIC]
    target = list(reversed(found.partitions[0].replicas))[:2]
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": target}]}))
    main = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    said = court.tool(main, "--reassignment-json-file", str(plan), "--execute", "--throttle", "50000000")
    require(f"Successfully started partition reassignment for {TOPIC}-0" in said, said)

    def is_done() -> bool:
        said = court.tool(main, "--reassignment-json-file", str(plan), "--verify")
        return f"Reassignment of partition {TOPIC}-0 is completed" in said and "Clearing topic-level throttles" in said

    until(is_done, "the move is over and its throttles are gone")
    return f"{TOPIC}-0 is on {target}"


def transactions(court: Court) -> str:
    """TransactionsCommand finds a transaction that is under way, and none that hangs."""
    name = f"judged-{os.urandom(5).hex()}"
    producer = Producer({"bootstrap.servers": court.bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"open")
    require(producer.flush(PATIENCE_S) == 0, "a record of a transaction is acknowledged")
    main = "org.apache.kafka.tools.TransactionsCommand"
    said = court.tool(main, "describe", "--transactional-id", name)
    require("Ongoing" in said, said)
    said = court.tool(main, "find-hanging", "--broker-id", str(court.leaders()[0]))
    require(name not in said, said)
    producer.commit_transaction(PATIENCE_S)
    return "one under way, none hangs"


def replicas(court: Court) -> str:
    """ReplicaVerificationTool compares the replicas of a live cluster by checksum. It runs until it is stopped."""
    words = ("--broker-list", court.bootstrap, "--topics-include", TOPIC, "--report-interval-ms", "1000")
    command = java_command(
        "org.apache.kafka.tools.ReplicaVerificationTool", *words, classpath=court.classpath, options=QUICK
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    reports: list[str] = []
    try:
        for line in process.stdout:
            require("has mismatched" not in line and "different" not in line.lower(), line)
            if "max lag is" in line:
                reports.append(line.strip())
            if len(reports) >= 4:
                break
    finally:
        process.kill()
        process.wait()
    require(len(reports) >= 4, "it reports")
    require("max lag is 0" in reports[-1], reports[-1])
    return reports[-1]


def clients(court: Court) -> str:
    """VerifiableProducer and VerifiableConsumer, while every broker in turn is stopped and started."""
    source = Path(__file__).parents[2] / "tests" / "real_clients" / "java" / "Verifiables.java"
    classes = compile_java(source, court.classpath)
    written, seen = court.home / "producer.out", court.home / "consumer.out"
    reader = ("VerifiableConsumer", str(seen), "--bootstrap-server", court.bootstrap, "--topic", TOPIC)
    writer = ("VerifiableProducer", str(written), "--bootstrap-server", court.bootstrap, "--topic", TOPIC)
    tools = (
        "\t".join((*reader, "--group-id", f"judge-{os.urandom(5).hex()}", "--reset-policy", "latest", "--verbose")),
        "\t".join((*writer, "--throughput", "300", "--acks", "-1", "--max-messages", str(MESSAGES))),
    )
    command = java_command("Verifiables", *tools, classpath=f"{classes}:{court.classpath}", options=QUICK)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def events(file: Path, name: str) -> list[dict[str, object]]:
        lines = file.read_text().splitlines() if file.exists() else []
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [each for each in found if each.get("name") == name]

    def acknowledged() -> set[tuple[object, object]]:
        return {(each["partition"], each["offset"]) for each in events(written, "producer_send_success")}

    def refused() -> int:
        """It does not repeat what a moving leader refused."""
        return len(events(written, "producer_send_error"))

    def consumed() -> list[tuple[object, object]]:
        return [(each["partition"], each["offset"]) for each in events(seen, "record_data")]

    def missing() -> set[tuple[object, object]]:
        """Acknowledged and not consumed, from the first record on that the consumer saw in a partition."""
        seen = consumed()
        first = dict(reversed(seen))
        wanted = {(part, at) for part, at in acknowledged() if part in first and int(str(at)) >= int(str(first[part]))}
        return wanted - set(seen)

    try:
        until(lambda: len(consumed()) > 300, "records are produced and consumed")
        for number in court.brokers:
            court.restart(number)
        until(lambda: len(acknowledged()) + refused() >= MESSAGES, "the producer has sent all", 5 * PATIENCE_S)
        until(lambda: not missing(), "every acknowledged record is consumed")
    finally:
        process.kill()
        process.wait()
    counts = f"{len(acknowledged())} acknowledged, {refused()} refused, {len(set(consumed()))} consumed"
    return f"{counts}, none of the acknowledged missing"


def rolling(court: Court) -> str:
    """A rolling restart under confluent-kafka and our own clients, blocking and asyncio."""
    kinds = [kind(court.bootstrap) for kind in KINDS]
    admin = AdminClient({"bootstrap.servers": court.bootstrap})
    for made in admin.create_topics([NewTopic(kind.topic, PARTITIONS, 3) for kind in kinds]).values():
        made.result(PATIENCE_S)
    court.healthy()
    roll(kinds, court.brokers, court.healthy, at_least=500)
    for kind in kinds:
        check(kind, [court.home / str(number) for number in court.brokers])
    counts = ", ".join(f"{kind.name} {kind.count}" for kind in kinds)
    return f"acknowledged and read back in order: {counts}; all replicas are the same bytes"


def segments(court: Court) -> str:
    """DumpLogSegments reads every replica record by record, and finds the same in all replicas of a partition."""
    court.healthy()
    found: dict[int, dict[str, list[str]]] = {}
    for number in court.brokers:
        # A folder that ends with -delete is a replica that moved away; its files go after file.delete.delay.ms.
        found_files = (court.home / str(number)).glob(f"{TOPIC}-*/*.log")
        files = sorted(file for file in found_files if not file.parent.name.endswith("-delete"))
        names = ",".join(str(file) for file in files)
        words = ("--deep-iteration", "--print-data-log", "--files", names)
        said = run_java("kafka.tools.DumpLogSegments", *words, classpath=court.classpath)
        require("isvalid: false" not in said and "mismatch" not in said.lower(), said[-2_000:])
        found[number] = dumped(said)
    for partition in {name for of_broker in found.values() for name in of_broker}:
        copies = [of_broker[partition] for of_broker in found.values() if partition in of_broker]
        require(len(copies) > 1, f"{partition} has one replica only")
        require(all(copy == copies[0] for copy in copies), f"the replicas of {partition} differ")
    records = sum(len(lines) for lines in found[1].values())
    return f"{records} batches and records on broker 1, the same on the other replicas"


def dumped(said: str) -> dict[str, list[str]]:
    """What was found, by segment (`judged-0/00000000000000000000.log`)."""
    lines: dict[str, list[str]] = {}
    segment = ""
    for line in said.splitlines():
        if line.startswith("Dumping "):
            segment = "/".join(line.removeprefix("Dumping ").split("/")[-2:])
        elif segment and line.startswith(("baseOffset:", "| offset:")):
            lines.setdefault(segment, []).append(line)
    return lines


JUDGES: Final[dict[str, Callable[[Court], str]]] = {
    "tree": tree,
    "elections": elections,
    "moves": moves,
    "transactions": transactions,
    "replicas": replicas,
    "clients": clients,
    "rolling": rolling,
    "segments": segments,
}


def require(holds: bool, what: str) -> None:
    if not holds:
        raise ObjectionError(what)


def until(holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    end_s = time.monotonic() + patience_s
    while not holds():
        require(time.monotonic() < end_s, f"not within {patience_s:.0f} s: {what}")
        time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.judges", description=__doc__)
    parser.add_argument("judges", nargs="*", metavar="JUDGE", help=f"of {', '.join(JUDGES)}; all unless given")
    parser.add_argument("--zookeeper", default=VERSION, metavar="VERSION")
    given = parser.parse_args()
    objections = 0
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ixion-judges-")))
        zookeeper = stack.enter_context(RealZooKeeper(home / "zookeeper", version=given.zookeeper))
        court = Court(f"{zookeeper.connect}/judged", home)
        for broker in court.brokers.values():
            stack.callback(broker.stop)
            broker.start()
        court.prepare()
        for name in given.judges or JUDGES:
            try:
                said = JUDGES[name](court)
            except (AssertionError, RuntimeError, subprocess.TimeoutExpired) as objection:
                objections += 1
                said = f"OBJECTION: {objection}"
            print(f"{name}: {said}", flush=True)
        print(f"tree: {tree(court)}", flush=True)
    return 1 if objections else 0


if __name__ == "__main__":
    sys.exit(main())
