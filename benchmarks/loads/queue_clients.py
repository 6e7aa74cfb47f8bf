"""Queues as our own share consumer sees them, whichever broker it talks to.

The first poll of a new group joins it; all other figures begin after that.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ixion.clients import Admin, Producer, ShareConsumer
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.topics import NewTopic
from ixion.clients.share.record import ShareRecord
from ixion.language.model.resource_type import ResourceType

SIZE: Final = 100  # bytes of a record
WAIT_S: Final = 30.0
WARM: Final = 5  # releases that are not counted: the second member joins
WORKER: Final = {"max_poll_records": 1, "share_acquire_mode": "record_limit"}


def fill(bootstrap: str, topic: str, count: int, at_once: bool = True) -> None:
    """A topic of one partition, and a group of its name that begins at its start. `at_once`: in large batches."""
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1, replication=1)]).check()
        admin.alter_configs({Resource(ResourceType.GROUP, topic): {"share.auto.offset.reset": "earliest"}}).check()
    with Producer(bootstrap, linger_ms=5 if at_once else 0) as producer:
        for _ in range(count):
            sent = producer.send(topic, bytes(SIZE), partition=0)
            if not at_once:
                sent.result()
        producer.flush()


def member(bootstrap: str, group: str, **settings: Any) -> ShareConsumer[bytes, bytes]:
    return ShareConsumer(bootstrap, group=group, topics=[group], share_acknowledgement_mode="explicit", **settings)


def poll(consumer: ShareConsumer[bytes, bytes]) -> list[ShareRecord[bytes, bytes]]:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        found = consumer.poll(1.0)
        if found:
            return found
    raise TimeoutError(f"no record within {WAIT_S:g} s")


def first_record(bootstrap: str) -> float:
    """Milliseconds from a new member to the first record of a new group."""
    fill(bootstrap, "begin", 10)
    begun = time.monotonic()
    with member(bootstrap, "begin") as consumer:
        consumer.accept(poll(consumer)[0])
        return (time.monotonic() - begun) * 1e3


def drain(bootstrap: str, count: int, members: int) -> float:
    """Records a second that members on one partition take and accept, from the first record on."""
    topic = f"drain{members}"
    fill(bootstrap, topic, count)
    taken = 0

    def work(consumer: ShareConsumer[bytes, bytes]) -> None:
        nonlocal taken
        while taken < count:
            records = consumer.poll(0.5)
            for record in records:
                consumer.accept(record)
            taken += len(records)

    consumers = [member(bootstrap, topic, max_poll_records=5_000) for _ in range(members)]
    try:
        records = poll(consumers[0])
        begun, before = time.monotonic(), len(records)
        for record in records:
            consumers[0].accept(record)
        taken = before
        with ThreadPoolExecutor(members) as threads:
            list(threads.map(work, consumers))
        for consumer in consumers:
            consumer.commit()
        return (count - before) / (time.monotonic() - begun)
    finally:
        for consumer in consumers:
            consumer.close()


def worker(bootstrap: str, count: int) -> tuple[float, float]:
    """Jobs a second of a worker that holds one at a time, and the median milliseconds of an acknowledgement alone."""
    fill(bootstrap, "worker", count, at_once=False)
    with member(bootstrap, "worker", **WORKER) as consumer:
        consumer.accept(poll(consumer)[0]).result()
        half = count // 2
        begun = time.monotonic()
        for _ in range(half):
            consumer.accept(poll(consumer)[0])
        consumer.commit()
        jobs = half / (time.monotonic() - begun)
        times = []
        for _ in range(min(half - 2, 500)):
            record = poll(consumer)[0]
            begun = time.monotonic()
            consumer.accept(record).result()
            times.append(time.monotonic() - begun)
    return jobs, statistics.median(times) * 1e3


def release(bootstrap: str, count: int) -> tuple[float, float]:
    """Milliseconds from a release to the record at another member whose fetch waits: median, and the 99th of 100."""
    fill(bootstrap, "release", 1)
    with Admin(bootstrap) as admin:
        limit = {"share.delivery.count.limit": "10"}
        admin.alter_configs({Resource(ResourceType.GROUP, "release"): limit}).check()
    times: list[float] = []
    with (
        member(bootstrap, "release") as one,
        member(bootstrap, "release") as other,
        ThreadPoolExecutor(1) as thread,
        Producer(bootstrap, linger_ms=0) as producer,
    ):
        first, second = one, other
        record = poll(first)[0]
        for number in range(count + WARM):
            if record.delivery_count >= 8:  # before the limit: another record
                first.accept(record).result()
                producer.send("release", bytes(SIZE), partition=0).result()
                record = poll(first)[0]
            waiting = thread.submit(poll, second)
            time.sleep(0.05 + 0.001 * (number % 50))  # its fetch is at the broker by then
            begun = time.monotonic()
            first.release(record).result()
            record = waiting.result()[0]
            if number >= WARM:
                times.append(time.monotonic() - begun)
            first, second = second, first
        first.accept(record).result()
    times.sort()
    return statistics.median(times) * 1e3, times[int(len(times) * 0.99)] * 1e3
