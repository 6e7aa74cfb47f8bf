"""Reading topics, through Spark's own Kafka connector or through our data source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.spec.source import SourceSpec, Start

# A task reads one partition from its beginning to its end: larger fetches and a larger socket buffer than Kafka's.
_CONSUMER: Final = {"kafka.max.partition.fetch.bytes": str(2 << 20), "kafka.receive.buffer.bytes": str(1 << 20)}


def read_topic(
    spark: SparkSession,
    *topics: str,
    bootstrap: str = "localhost:9092",
    pattern: str | None = None,
    start: str | Start = "earliest",
    streaming: bool = True,
    headers: bool = True,
    committed_only: bool = True,
    max_records_per_batch: int | None = None,
    min_partitions: int | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The records of TOPICS with the connector's columns: key, value, topic, partition, offset, timestamp, headers.

    START is "earliest", "latest" or a Start; it counts for the first run of a checkpoint. Records that were deleted
    before they were read stop the stream; holes in the offsets (compaction, transactions, delays) do not.
    """
    position = Start(kind="latest" if start == "latest" else "earliest") if isinstance(start, str) else start
    spec = SourceSpec(
        bootstrap=bootstrap,
        topics=topics,
        pattern=pattern,
        start=position,
        max_records_per_batch=max_records_per_batch,
        min_partitions=min_partitions,
        committed_only=committed_only,
        options=options or {},
    )
    return read_source(spark, spec, streaming=streaming, headers=headers)


def read_source(spark: SparkSession, spec: SourceSpec, *, streaming: bool = True, headers: bool = True) -> DataFrame:
    settings = {"includeHeaders": str(headers).lower(), **source_options(spec, spark)}
    kind = "ixion" if spec.reader == "ixion" else "kafka"
    if streaming:
        return spark.readStream.format(kind).options(**settings).load()
    return spark.read.format(kind).options(**{"endingOffsets": "latest", **settings}).load()


def source_options(spec: SourceSpec, spark: SparkSession) -> dict[str, str]:
    """Options by the connector's names. The user's own options take precedence."""
    options = {"kafka.bootstrap.servers": spec.bootstrap, "failOnDataLoss": "true"}
    if spec.reader == "connector":
        options.update(_CONSUMER)
    if spec.pattern is not None:
        options["subscribePattern"] = spec.pattern
    else:
        options["subscribe"] = ",".join(spec.topics)
    if spec.committed_only:
        options["kafka.isolation.level"] = "read_committed"
    if spec.max_records_per_batch is not None:
        options["maxOffsetsPerTrigger"] = str(spec.max_records_per_batch)
    if spec.min_partitions is not None:
        options["minPartitions"] = str(spec.min_partitions)
    return {**options, **_start_options(spec, spark), **spec.options}


def _start_options(spec: SourceSpec, spark: SparkSession) -> dict[str, str]:
    start = spec.start
    if start.kind == "time":
        # A partition without records of that time or later starts at its end.
        return {"startingTimestamp": str(start.time_ms), "startingOffsetsByTimestampStrategy": "latest"}
    if start.kind == "offsets":
        return {"startingOffsets": _all_partitions(spec, spark)}
    return {"startingOffsets": start.kind}


def _all_partitions(spec: SourceSpec, spark: SparkSession) -> str:
    """The connector needs an offset for every partition; those not named start at the earliest record, -2."""
    from ixion.pipelines.source.broker import SourceBroker

    with SourceBroker(spark, spec.bootstrap, spec.options) as broker:
        partitions = broker.matching(spec)
    named = spec.start.offsets
    offsets = {
        topic: {str(number): named.get(topic, {}).get(number, -2) for number in range(count)}
        for topic, count in partitions.items()
    }
    return json.dumps(offsets)


def offsets_behind(ends: Mapping[str, Mapping[str, int]], reached: Mapping[str, Mapping[str, int]]) -> int:
    """How many offsets REACHED is behind ENDS; both topic -> partition -> next offset."""
    return sum(
        max(0, end - reached.get(topic, {}).get(partition, 0))
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )
