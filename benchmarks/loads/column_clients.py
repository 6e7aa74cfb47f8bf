"""Reading a whole topic by batches: into columns, and into Arrow. Each is called in a process of its own."""

from __future__ import annotations

import time

import pyarrow as pa
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TheirPartition

from ixion.clients.consumer.arrow import arrow_schema, to_arrow
from ixion.clients.consumer.ranges import read_ranges
from ixion.clients.metadata import TopicPartition

Figures = tuple[float, float]  # records a second, records a second of this process's processor time


def ours(bootstrap: str, topic: str, count: int, arrow: bool) -> Figures:
    seen = 0
    begun, cpu = time.perf_counter(), time.process_time()
    for place, columns in read_ranges(bootstrap, {TopicPartition(topic, 0): (0, count)}):
        seen += to_arrow(place, columns).num_rows if arrow else len(columns)
    return figures(count, seen, begun, cpu)


def theirs(bootstrap: str, topic: str, count: int, arrow: bool) -> Figures:
    """librdkafka hands out lists of messages; what is wanted of each is asked for, as a column needs it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 500_000,
        }
    )
    schema = arrow_schema(headers=False)
    seen = 0
    begun, cpu = time.perf_counter(), time.process_time()
    consumer.assign([TheirPartition(topic, 0, 0)])
    while seen < count:
        messages = consumer.consume(min(10_000, count - seen), timeout=30)
        keys = [message.key() for message in messages]
        values = [message.value() for message in messages]
        offsets = [message.offset() for message in messages]
        times = [message.timestamp() for message in messages]
        seen += len(messages)
        if arrow:
            columns = [
                *(keys, values, [topic] * len(keys), [0] * len(keys), offsets),
                *([time_ms for _, time_ms in times], [kind for kind, _ in times]),
            ]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            pa.RecordBatch.from_arrays(arrays, schema=schema)
    found = figures(count, seen, begun, cpu)
    consumer.close()
    return found


def figures(count: int, seen: int, begun: float, cpu: float) -> Figures:
    if seen != count:
        raise RuntimeError(f"{seen} of {count} records came")
    return count / (time.perf_counter() - begun), count / (time.process_time() - cpu)
