"""A5: a topic whose records all come later by the same time (delivery.delay.mode=fixed), while a million wait.

A few thousand records are produced first, `RATE` a second, and then all the others. When everything waits, the delay is
set so that the first is due in two seconds. A consumer notes when each of the first comes; its due time is the time of
its append, which is its timestamp, and the delay.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from benchmarks.loads.broker_servers import ixion_on
from benchmarks.loads.schedulers.kafka_protocol import QUIET, create
from benchmarks.loads.schedulers.messages import VALUE, part
from benchmarks.loads.schedulers.scheduler import PATIENCE_S, now_ms, resident_of

RATE = 500
LEAD_MS = 2_000
HOUR_MS = 3_600_000
DELAY = "delivery.delay.ms"


def fixed(count: int, timed: int) -> Mapping[str, float]:
    with TemporaryDirectory(prefix="delay-") as folder, ixion_on(str(Path(folder))) as server:
        mode = {"delivery.delay.mode": "fixed", DELAY: str(HOUR_MS)}
        create(server.bootstrap, {"warm": mode, "fixed": mode})
        producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5, **QUIET})
        produce(producer, "warm", count // 5)  # nothing that happens once counts, such as buffers for requests
        begun_ms = now_ms()
        for number in range(timed):
            producer.produce("fixed", VALUE, partition=0)
            if number % 5 == 0:
                producer.poll(max(begun_ms / 1e3 + number / RATE - time.time(), 0))
        acknowledged(producer)
        before = resident_of(server.pid)
        produce(producer, "fixed", count)
        grown = resident_of(server.pid) - before
        found = arrivals(server.bootstrap, timed, begun_ms)
    return {"fixed-memory": max(grown, 0) / 1e6, "fixed-p99": part(found, 990)}


def produce(producer: Producer, topic: str, count: int) -> None:
    for _ in range(count):
        while len(producer) > 20_000:
            producer.poll(0.01)
        producer.produce(topic, VALUE, partition=0)
    acknowledged(producer)


def acknowledged(producer: Producer) -> None:
    if producer.flush(PATIENCE_S):
        raise RuntimeError("not everything was acknowledged")


def arrivals(bootstrap: str, count: int, begun_ms: float) -> list[float]:
    """How late each of the first records came, in milliseconds, sorted."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False, **QUIET})
    consumer.assign([TopicPartition("fixed", 0, 0)])
    if consumer.poll(1) is not None:
        raise RuntimeError("a record came early")
    delay_ms = int(now_ms() - begun_ms) + LEAD_MS
    entry = ConfigEntry(DELAY, str(delay_ms), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "fixed", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)
    found: list[float] = []
    end = time.monotonic() + PATIENCE_S
    while len(found) < count:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append(now_ms() - message.timestamp()[1] - delay_ms)
        elif time.monotonic() > end:
            raise RuntimeError(f"{count - len(found)} records did not come")
    consumer.close()
    found.sort()
    if found[0] < 0:
        raise RuntimeError(f"a record came {-found[0]:.3f} ms early")
    return found
