"""The classes that Spark calls to read: a batch reader and a stream reader, which share planning and reading.

Planning runs once in a process beside the driver, reading in a worker per task, so readers are pickled and hold options
only. A stream's offsets are those of the connector, topic -> partition -> next offset.

When Spark 4.0 or 4.1 asks a Python source for the latest offset, it does not say how far the query has read or which
trigger it has, and it ends an `availableNow` query after the first answer. So a batch cannot be limited, and
`maxOffsetsPerTrigger` is refused: with it, `availableNow` would end before everything is read. Spark 4.2 says both;
`admission` has the reader for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from ixion.clients.admin.offsets import EARLIEST, LATEST
from ixion.clients.consumer.ranges import read_ranges
from ixion.clients.metadata import TopicPartition
from ixion.clients.security import read_security
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.spark import places
from ixion.spark.archives import spare_archives
from ixion.spark.memory import keep_freed_memory
from ixion.spark.options import Edge, Options, read_options
from ixion.spark.sink import BatchWriter, StreamWriter
from ixion.spark.sink_options import read_sink_options
from ixion.spark.split import split

if TYPE_CHECKING:
    import pyarrow

CAN_LIMIT: Final = find_spec("pyspark.sql.streaming.datasource") is not None  # from Spark 4.2 on
SCHEMA = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
HEADERS = "headers array<struct<key: string, value: binary>>"


class OffsetRange(InputPartition):
    """The range of one task: from `start` to before `end`."""

    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end


class IxionDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ixion"

    def schema(self) -> str:
        spare_archives()
        return f"{SCHEMA}, {HEADERS}" if read_options(self.options).headers else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 (Spark's signature)
        return BatchReader(read_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        options = read_options(self.options)
        if CAN_LIMIT:
            from ixion.spark.admission import LimitedStreamReader

            return LimitedStreamReader(options)
        if options.max_offsets_per_trigger:
            text = "a Python source can limit a batch from Spark 4.2 on"
            raise ValueError(
                f"format('ixion') has no option maxOffsetsPerTrigger in Spark {pyspark.__version__}: {text}"
            )
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(read_sink_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return StreamWriter(read_sink_options(self.options), schema, overwrite)


class BatchReader(DataSourceReader):
    def __init__(self, options: Options) -> None:
        check_batch(options)
        spare_archives()
        self._options = options

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with places.connect(options) as admin:
            found = places.find_partitions(admin, options)
            starts = places.resolve(admin, found, options.start or Edge(EARLIEST), options, is_start=True)
            ends = places.resolve(admin, found, options.end or Edge(LATEST), options, is_start=False)
        return tasks(options, {place: (starts[place], ends[place]) for place in found})

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read(self._options, partition)


class StreamReader(DataSourceStreamReader):
    def __init__(self, options: Options) -> None:
        if options.end is not None:
            raise ValueError("a stream has no end; leave out endingOffsets and its like")
        spare_archives()
        self._options = options

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        options = self._options
        with places.connect(options) as admin:
            found = places.find_partitions(admin, options)
            start = options.start or Edge(LATEST)
            return places.to_json(places.resolve(admin, found, start, options, is_start=True))

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        options = self._options
        with places.connect(options) as admin:
            found = places.find_partitions(admin, options)
            return places.to_json(places.ends(admin, found, LATEST, options))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        options = self._options
        starts, ends = places.from_json(start), places.from_json(end)
        new = [place for place in ends if place not in starts]
        with places.connect(options) as admin:
            starts.update(places.ends(admin, new, EARLIEST, options))  # read a new partition from its beginning
        for place, first in starts.items():
            if options.fail_on_data_loss and ends.get(place, first) < first:
                raise data_loss(f"{place} ends at offset {ends[place]}, and was read up to {first}")
        return tasks(options, {place: (starts[place], ends[place]) for place in ends})

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: Spark keeps the checkpoint."""


def check_batch(options: Options) -> None:
    if options.max_offsets_per_trigger:
        raise ValueError("maxOffsetsPerTrigger is for streams; maxRecordsPerPartition makes smaller tasks")
    start, end = options.start, options.end
    if start is not None and start.offsets is None and start.times is None and start.time_ms == LATEST:
        raise ValueError("startingOffsets=latest leaves a batch query nothing to read")
    if end is not None and end.offsets is None and end.times is None and end.time_ms == EARLIEST:
        raise ValueError("endingOffsets=earliest leaves a batch query nothing to read")


def tasks(options: Options, ranges: dict[TopicPartition, tuple[int, int]]) -> list[InputPartition]:
    pieces = split(ranges, options.min_partitions, options.max_records_per_partition)
    return [OffsetRange(place.topic, place.partition, start, end) for place, (start, end) in pieces]


def read(options: Options, task: InputPartition) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    from ixion.clients.consumer.arrow import to_arrow

    assert isinstance(task, OffsetRange)
    spare_archives()
    keep_freed_memory()
    place = TopicPartition(task.topic, task.partition)

    def missed(count: int) -> None:
        if options.fail_on_data_loss:
            raise data_loss(f"{count} records of {place} were deleted before they could be read")

    microseconds = pa.timestamp("us", tz="UTC")
    found = read_ranges(
        options.bootstrap,
        {place: (task.start, task.end)},
        read_committed=options.read_committed,
        partition_bytes=options.partition_bytes,
        patience_s=options.timeout_s,
        on_missed=missed,
        client_id=options.client_id,
        security=read_security(options.security),
        request_timeout_s=options.timeout_s,
    )
    for _, columns in found:
        batch = to_arrow(place, columns, headers=options.headers)
        at = batch.schema.get_field_index("timestamp")
        yield batch.set_column(at, "timestamp", batch.column(at).cast(microseconds))


def data_loss(what: str) -> KafkaError:
    return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{what}; failOnDataLoss=false continues without them")
