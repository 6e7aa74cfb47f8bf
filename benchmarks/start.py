"""From nothing to the first acknowledged record, beside Apache Kafka 3.9.1.

The client (librdkafka) runs before the broker does and tries to connect every few milliseconds: its own start is not
measured. Each round starts every broker anew with an empty directory:

- `ixion serve` and Apache Kafka (KRaft, formatted beforehand) as processes: from making the process;
- `ixion serve` on the directory of one that was killed (SIGKILL) with 140 partitions, all of them written to;
- `ixion.testing.Broker`, as a test has it: from the call of `start`, in a process that has imported it;
- `ixion.testing.Cluster(3)` in the same way: ready when all three brokers know each other.

And the commands that people type, `ixion --help` and `ixion topic list` against a broker that runs: elapsed and
processor time of the whole process, the median of twenty, beside a Python that does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager

from confluent_kafka import Producer

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from benchmarks.loads.broker_clients import create_topics
from benchmarks.loads.broker_servers import Server, apache_kafka, ixion, ixion_after_kill
from benchmarks.loads.commands import cost_ms
from benchmarks.loads.first_record import Client
from ixion.testing import Broker, Cluster

OURS, KILLED, IN_TESTS, KAFKA = "ixion serve", "ixion, killed", "ixion.testing.Broker", "Apache Kafka 3.9.1"
THREE = "ixion.testing.Cluster(3)"
COMMANDS, PYTHON = "ixion's commands", "python -c pass"
TOPICS, PARTITIONS, RECORDS = 14, 10, 20_000
REST_S = 1.0


def process(start: AbstractContextManager[Server]) -> Mapping[str, float]:
    with Client() as client, start as server:
        acknowledged = client.first_record(server.bootstrap)
        time.sleep(REST_S)
        return {
            "first": (acknowledged - server.started) * 1000,
            "processor": server.cpu_seconds() * 1000,
            "idle": server.resident_mb(),
        }


def fill(bootstrap: str) -> None:
    """Idempotent records of 200 bytes into every partition, as an application leaves them."""
    create_topics(bootstrap, {f"t{number}": PARTITIONS for number in range(TOPICS)})
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(f"t{number % TOPICS}", bytes(200), partition=number // TOPICS % PARTITIONS)
        producer.poll(0)
    producer.flush(60)


def in_a_test() -> Mapping[str, float]:
    with Client() as client:
        begun = time.time()
        with Broker() as broker:
            ready = time.time()
            acknowledged = client.first_record(broker.bootstrap)
    return {"ready": (ready - begun) * 1000, "first": (acknowledged - begun) * 1000}


def three_in_a_test() -> Mapping[str, float]:
    begun = time.time()
    with Cluster(3):
        return {"ready": (time.time() - begun) * 1000}


def commands() -> Mapping[str, float]:
    with Broker() as broker:
        broker.create_topic("orders", 3)
        return both(
            cost_ms("-m", "ixion", "--help"),
            cost_ms("-m", "ixion", "topic", "list", "-b", broker.bootstrap),
        )


def nothing() -> Mapping[str, float]:
    cost = cost_ms("-c", "pass")
    return both(cost, cost)


def both(of_help: tuple[float, float], of_list: tuple[float, float]) -> Mapping[str, float]:
    return {"help-wall": of_help[0], "help": of_help[1], "list-wall": of_list[0], "list": of_list[1]}


def contenders(_session: Session) -> Mapping[str, Contender]:
    return {
        OURS: lambda: process(ixion()),
        KILLED: lambda: process(ixion_after_kill(fill)),
        IN_TESTS: in_a_test,
        THREE: three_in_a_test,
        KAFKA: lambda: process(apache_kafka()),
        COMMANDS: commands,
        PYTHON: nothing,
    }


BENCHMARK = Benchmark(
    name="start",
    title="From nothing to the first acknowledged record",
    rows=(
        Row(key="first", label="start to the first acknowledged record", unit="ms"),
        Row(key="processor", label="processor time of that, and of a second of rest", unit="ms"),
        Row(key="ready", label="start to ready, in a test", unit="ms"),
        Row(key="idle", label="memory, idle", unit="MB"),
        Row(key="help-wall", label="ixion --help", unit="ms"),
        Row(key="list-wall", label="ixion topic list", unit="ms"),
        Row(key="help", label="ixion --help, processor time", unit="ms"),
        Row(key="list", label="ixion topic list, processor time", unit="ms"),
    ),
    goals=(
        Goal(label="a process, beside Kafka's", value=("first", OURS), base=("first", KAFKA), at_most=0.1),
        Goal(label="a process: 300 ms", value=("first", OURS), base=300.0, at_most=1.0),
        Goal(label="after a kill, beside a new one", value=("first", KILLED), base=("first", OURS), at_most=1.5),
        Goal(label="in a test, ready: 50 ms", value=("ready", IN_TESTS), base=50.0, at_most=1.0),
        Goal(label="three in a test, ready: 150 ms", value=("ready", THREE), base=150.0, at_most=1.0),
        Goal(label="idle memory, beside Kafka's", value=("idle", OURS), base=("idle", KAFKA), at_most=0.15),
        Goal(label="help, beside Python alone", value=("help", COMMANDS), base=("help", PYTHON), at_most=4.0),
        Goal(label="topic list, beside Python alone", value=("list", COMMANDS), base=("list", PYTHON), at_most=8.0),
        Goal(label="help: 150 ms", value=("help-wall", COMMANDS), base=150.0, at_most=1.0),
        Goal(label="topic list: 150 ms", value=("list-wall", COMMANDS), base=150.0, at_most=1.0),
        Goal(label="idle memory: 60 MB", value=("idle", OURS), base=60.0, at_most=1.0),
    ),
    baseline=KAFKA,
    contenders=contenders,
)
