"""Our producer beside confluent-kafka, aiokafka and kafka-python: against ixion, and against Apache Kafka 3.9.1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients
from benchmarks.loads import producer_clients as loads
from benchmarks.loads.broker_servers import Server, apache_kafka, ixion

OURS, OURS_AIO = "ixion", "ixion.aio"
CONFLUENT, AIOKAFKA, KAFKA_PYTHON = "confluent-kafka", "aiokafka", "kafka-python"


class Client(NamedTuple):
    rate: Callable[[str, int, int], loads.Rate]
    wait: Callable[[str, int], float]
    statement: str
    share: int  # of the records that the quickest sends, so that no round takes minutes


CLIENTS = {
    OURS: Client(loads.ixion_rate, loads.ixion_wait, "from ixion.clients import Producer", 1),
    OURS_AIO: Client(loads.ixion_aio_rate, loads.ixion_aio_wait, "from ixion.clients.aio import Producer", 2),
    CONFLUENT: Client(loads.confluent_rate, loads.confluent_wait, "from confluent_kafka import Producer", 1),
    AIOKAFKA: Client(loads.aiokafka_rate, loads.aiokafka_wait, "from aiokafka import AIOKafkaProducer", 10),
    KAFKA_PYTHON: Client(loads.kafka_python_rate, loads.kafka_python_wait, "from kafka import KafkaProducer", 20),
}


def measure(ours: Server, theirs: Server | None, client: Client, records: int, waits: int) -> Mapping[str, float]:
    count = records // client.share
    small: loads.Rate = fresh(client.rate, ours.bootstrap, count, 100)
    large: loads.Rate = fresh(client.rate, ours.bootstrap, count, 1000)
    found = {
        "small": small.per_second,
        "large": large.per_second,
        "cpu": small.cpu_us,
        "memory": large.peak_mb,
        "wait": fresh(client.wait, ours.bootstrap, waits),
        "import": fresh(loads.import_ms, client.statement),
    }
    if theirs is not None:
        other: loads.Rate = fresh(client.rate, theirs.bootstrap, count, 100)
        found["kafka_small"] = other.per_second
        found["kafka_wait"] = fresh(client.wait, theirs.bootstrap, waits)
    return found


def contenders(session: Session) -> Mapping[str, Contender]:
    records, waits = (20_000, 300) if session.quick else (500_000, 3000)
    ours = session.enter(ixion())
    theirs = None if session.quick else session.enter(apache_kafka())
    for server in (ours, theirs):
        if server is not None:
            fresh(broker_clients.first_ack, server.bootstrap)
            fresh(broker_clients.create_topics, server.bootstrap, {loads.TOPIC: 3})
    return {name: partial(measure, ours, theirs, client, records, waits) for name, client in CLIENTS.items()}


ROWS = (
    Row(key="small", label="records of 100 bytes, one at a time", unit="1/s"),
    Row(key="large", label="records of 1,000 bytes, one at a time", unit="1/s"),
    Row(key="wait", label="one record, waited for: median", unit="µs"),
    Row(key="cpu", label="the client's processor time per record of 100 bytes", unit="µs"),
    Row(key="memory", label="the client's peak of memory", unit="MB"),
    Row(key="import", label="processor time of the import", unit="ms"),
    Row(key="kafka_small", label="against Apache Kafka: records of 100 bytes", unit="1/s"),
    Row(key="kafka_wait", label="against Apache Kafka: one record, waited for: median", unit="µs"),
)

BENCHMARK = Benchmark(
    name="clients",
    title="Python producers side by side",
    rows=ROWS,
    goals=(
        Goal(label="rate beside kafka-python", value=("small", OURS), base=("small", KAFKA_PYTHON), at_least=5.0),
        Goal(label="rate beside aiokafka", value=("small", OURS_AIO), base=("small", AIOKAFKA), at_least=2.0),
        Goal(label="rate beside confluent-kafka", value=("small", OURS), base=("small", CONFLUENT), at_least=0.7),
        Goal(label="waiting beside confluent-kafka", value=("wait", OURS), base=("wait", CONFLUENT), at_most=1.0),
        Goal(label="import", value=("import", OURS), base=60.0, at_most=1.0),
    ),
    baseline=CONFLUENT,
    contenders=contenders,
    rounds=3,
)
