"""The pipelines that are timed, and the topics they read."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from ixion.pipelines import Pipeline
from ixion.pipelines.spec import read_spec

BYTES = '[format]\ntype = "bytes"\n'
JSON = '[format]\ntype = "json"\nschema = "id STRING, n INT, at TIMESTAMP, pad STRING"\n'
EXPECT = '[[expectations]]\ncheck = "n >= 0"\notherwise = "quarantine"\n'
SQL = "[[steps]]\nsql = \"SELECT *, n * 2 AS twice, date_trunc('HOUR', at) AS hour FROM stream\"\n"
ONCE = '[[steps]]\nwatermark = { column = "at", delay = "1 hour" }\n[[steps]]\ndeduplicate = ["id"]\n'
# What each step adds: every job has what the one before it has, and one thing more.
STEPS: Mapping[str, str] = {
    "parse JSON": JSON,
    "+ an expectation": JSON + EXPECT,
    "+ a SQL step": JSON + EXPECT + SQL,
    "+ de-duplication": JSON + EXPECT + SQL + ONCE,
}


def drain(spark: SparkSession, bootstrap: str, topic: str, text: str, folder: Path, more: str = "") -> float:
    """Seconds that a pipeline takes to drain TOPIC to Parquet, from the first question to the last commit."""
    shutil.rmtree(folder, ignore_errors=True)
    source = f'name = "bench"\n[source]\nbootstrap = "{bootstrap}"\ntopics = ["{topic}"]\n{more}\n'
    pipeline = Pipeline(read_spec(f'{source}{text}[[sinks]]\ntype = "parquet"\npath = "out"\n', folder=folder))
    begun = time.perf_counter()
    figures = pipeline.run(spark)
    assert figures.lag == 0
    return time.perf_counter() - begun


def produce_json(bootstrap: str, topic: str, count: int) -> None:
    """About 100 bytes each."""
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    for number in range(count):
        record = {"id": f"o{number}", "n": number % 100, "at": "2026-01-31T08:00:00Z", "pad": "x" * 30}
        producer.produce(topic, json.dumps(record), partition=number % 2)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
