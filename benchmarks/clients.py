"""Our producer and consumer beside confluent-kafka, aiokafka and kafka-python, against ixion and Apache Kafka 3.9.1.

A producer sends records one at a time, with acks=all and idempotence, to three partitions. A consumer reads all of a
topic, a record at a time, or by batches: then confluent-kafka's lists of messages are made columns, as ours are. Slow
clients get fewer records, so that no round takes minutes. "wait" is one record that is sent and waited for.

librdkafka fills batches of 1 MB unless told otherwise, our producer those of Kafka's own, 16 KB. The rows "both with
batches of" give both the same size. Where the broker is the limit, two clients have the same rate however much they
differ: the client's processor time per record shows the difference then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients
from benchmarks.loads import consumer_clients as reading
from benchmarks.loads import producer_clients as sending
from benchmarks.loads.broker_servers import Server, apache_kafka, ixion
from benchmarks.loads.client_meter import Rate, import_ms

OURS, OURS_AIO = "ixion", "ixion.aio"
CONFLUENT, AIOKAFKA, KAFKA_PYTHON = "confluent-kafka", "aiokafka", "kafka-python"
SIZES = {100: "100 B", 1000: "1 KB"}
BROKERS = {"ixion": "", "kafka": "against Apache Kafka: "}
SENT = {100: 300_000, 1000: 150_000}
READ = {100: 600_000, 1000: 200_000}
BATCHES = {16_384: "16 KB", 1_000_000: "1 MB"}  # Kafka's default and librdkafka's
EQUAL = 1000  # size of the records that are sent with equal batches
WAITS = 2000
LEAST = 1000  # records of the slowest clients in a quick run

Load = Callable[[str, int, int], Rate]
EqualLoad = Callable[[str, int, int, int], Rate]


class Client(NamedTuple):
    send: Load
    wait: Callable[[str, int], float]
    read: Load
    statement: str
    share: int  # of the records that the quickest send and read
    batches: Load | None = None
    arrow: Load | None = None
    equal: EqualLoad | None = None  # with batches of that size


CLIENTS = {
    OURS: Client(
        sending.ixion_rate,
        sending.ixion_wait,
        reading.ixion_one,
        "from ixion.clients import Consumer, Producer",
        1,
        reading.ixion_batches,
        reading.ixion_arrow,
        sending.ixion_rate,
    ),
    OURS_AIO: Client(
        sending.ixion_aio_rate,
        sending.ixion_aio_wait,
        reading.ixion_aio_one,
        "from ixion.clients.aio import Consumer, Producer",
        2,
    ),
    CONFLUENT: Client(
        sending.confluent_rate,
        sending.confluent_wait,
        reading.confluent_one,
        "from confluent_kafka import Consumer, Producer",
        1,
        reading.confluent_batches,
        reading.confluent_arrow,
        sending.confluent_rate,
    ),
    AIOKAFKA: Client(
        sending.aiokafka_rate,
        sending.aiokafka_wait,
        reading.aiokafka_one,
        "from aiokafka import AIOKafkaConsumer, AIOKafkaProducer",
        10,
    ),
    KAFKA_PYTHON: Client(
        sending.kafka_python_rate,
        sending.kafka_python_wait,
        reading.kafka_python_one,
        "from kafka import KafkaConsumer, KafkaProducer",
        20,
    ),
}


def measure(servers: Mapping[str, Server], client: Client, scale: float) -> Mapping[str, float]:
    found: dict[str, float] = {"import": fresh(import_ms, client.statement)}
    for name, server in servers.items():
        where = server.bootstrap
        found[f"{name}-wait"] = fresh(client.wait, where, int(WAITS * scale))
        for size in SIZES:
            sent: Rate = fresh(client.send, where, max(int(SENT[size] * scale) // client.share, LEAST), size)
            read: Rate = fresh(client.read, where, max(int(READ[size] * scale) // client.share, LEAST), size)
            found[f"{name}-send-{size}"] = sent.per_second
            found[f"{name}-read-{size}"] = read.per_second
            if name == "ixion":
                found[f"send-cpu-{size}"], found[f"read-cpu-{size}"] = sent.cpu_us, read.cpu_us
                found[f"send-memory-{size}"], found[f"read-memory-{size}"] = sent.peak_mb, read.peak_mb
            for kind, load in (("batches", client.batches), ("arrow", client.arrow)):
                if load is not None:
                    rate: Rate = fresh(load, where, int(READ[size] * scale), size)
                    found[f"{name}-{kind}-{size}"] = rate.per_second
                    found[f"{name}-{kind}-cpu-{size}"] = rate.cpu_us
        if client.equal is not None:
            for batch in BATCHES:
                equal: Rate = fresh(client.equal, where, max(int(SENT[EQUAL] * scale), LEAST), EQUAL, batch)
                found[f"{name}-equal-{batch}"] = equal.per_second
                found[f"{name}-equal-cpu-{batch}"] = equal.cpu_us
    return found


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.03 if session.quick else 1.0
    servers = {"ixion": session.enter(ixion())}
    if not session.quick:
        servers["kafka"] = session.enter(apache_kafka())
    for server in servers.values():
        fresh(broker_clients.first_ack, server.bootstrap)
        topics = {sending.TOPIC: 3} | {reading.topic_of(size): reading.PARTITIONS for size in SIZES}
        fresh(broker_clients.create_topics, server.bootstrap, topics)
        for size, count in READ.items():
            most = int(count * scale) + reading.PARTITIONS
            fresh(broker_clients.produce, server.bootstrap, reading.topic_of(size), reading.PARTITIONS, size, most, 1)
    return {name: partial(measure, servers, client, scale) for name, client in CLIENTS.items()}


KINDS = {
    "send": "records sent, one at a time",
    "read": "records read, one at a time",
    "batches": "records read by batches, as columns",
    "arrow": "records read into Arrow",
}

CPU = "the client's processor time per record"

ROWS = (
    *(
        Row(key=f"{broker}-{kind}-{size}", label=f"{words}{what}, {label}", unit="1/s", charted=broker == "ixion")
        for broker, words in BROKERS.items()
        for kind, what in KINDS.items()
        for size, label in SIZES.items()
    ),
    *(
        Row(
            key=f"{broker}-equal-{batch}",
            label=f"{words}{KINDS['send']}, {SIZES[EQUAL]}, both with batches of {label}",
            unit="1/s",
            charted=False,
        )
        for broker, words in BROKERS.items()
        for batch, label in BATCHES.items()
    ),
    *(
        Row(key=f"{broker}-wait", label=f"{words}one record of 100 B, sent and waited for: median", unit="µs")
        for broker, words in BROKERS.items()
    ),
    *(
        Row(key=f"{kind}-{figure}-{size}", label=f"{label}, {words}, {name}", unit=unit, charted=False)
        for figure, unit, label in (
            ("cpu", "µs", CPU),
            ("memory", "MB", "its peak"),
        )
        for kind, words in (("send", "sent"), ("read", "read"))
        for size, name in SIZES.items()
    ),
    *(
        Row(
            key=f"{broker}-{kind}-cpu-{size}",
            label=f"{words}{CPU}, {KINDS[kind]}, {label}",
            unit="µs",
            charted=False,
        )
        for broker, words in BROKERS.items()
        for kind in ("batches", "arrow")
        for size, label in SIZES.items()
    ),
    *(
        Row(
            key=f"{broker}-equal-cpu-{batch}",
            label=f"{words}{CPU}, {SIZES[EQUAL]} sent, both with batches of {label}",
            unit="µs",
            charted=False,
        )
        for broker, words in BROKERS.items()
        for batch, label in BATCHES.items()
    ),
    Row(key="import", label="processor time of the import", unit="ms"),
)

PEERS = ((KAFKA_PYTHON, OURS, 5.0), (AIOKAFKA, OURS_AIO, 2.0), (CONFLUENT, OURS, 0.7))

BENCHMARK = Benchmark(
    name="clients",
    title="Python clients side by side",
    rows=ROWS,
    goals=(
        *(
            Goal(
                label=f"{BROKERS[broker]}{KINDS[kind]}, {label}, beside {peer}",
                value=(f"{broker}-{kind}-{size}", ours),
                base=(f"{broker}-{kind}-{size}", peer),
                at_least=least,
            )
            for broker in BROKERS
            for kind in ("send", "read")
            for size, label in SIZES.items()
            for peer, ours, least in PEERS
        ),
        *(
            Goal(
                label=f"{BROKERS[broker]}{KINDS[kind]}, {label}, beside {CONFLUENT}",
                value=(f"{broker}-{kind}-{size}", OURS),
                base=(f"{broker}-{kind}-{size}", CONFLUENT),
                at_least=1.5,
            )
            for broker in BROKERS
            for kind in ("batches", "arrow")
            for size, label in SIZES.items()
        ),
        *(
            Goal(
                label=f"{BROKERS[broker]}processor time, {KINDS[kind]}, {label}, beside {CONFLUENT}",
                value=(f"{broker}-{kind}-cpu-{size}", OURS),
                base=(f"{broker}-{kind}-cpu-{size}", CONFLUENT),
                at_most=1 / 1.5,
            )
            for broker in BROKERS
            for kind in ("batches", "arrow")
            for size, label in SIZES.items()
        ),
        *(
            Goal(
                label=f"{BROKERS[broker]}{KINDS['send']}, {SIZES[EQUAL]}, batches of {label}, beside {CONFLUENT}",
                value=(f"{broker}-equal-{batch}", OURS),
                base=(f"{broker}-equal-{batch}", CONFLUENT),
                at_least=0.7,
            )
            for broker in BROKERS
            for batch, label in BATCHES.items()
        ),
        *(
            Goal(
                label=f"{BROKERS[broker]}sent and waited for, beside {CONFLUENT}",
                value=(f"{broker}-wait", OURS),
                base=(f"{broker}-wait", CONFLUENT),
                at_most=1.0,
            )
            for broker in BROKERS
        ),
        Goal(label="import", value=("import", OURS), base=60.0, at_most=1.0),
    ),
    baseline=CONFLUENT,
    contenders=contenders,
    rounds=3,
)
