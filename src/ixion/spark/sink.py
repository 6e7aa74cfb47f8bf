"""The classes that Spark calls to write: a writer of one frame, and a writer of a stream, batch by batch.

`write` runs in a task and returns its rows as a message (`staging`); `commit` runs in a process beside the driver, with
the messages of all tasks (`commit`). Spark calls it again with the same number if it does not know whether the batch
was committed, perhaps in another process, days later. With `delivery` "at-least-once" the tasks send their rows
themselves, and a batch that is repeated is in the topic twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ixion.spark.archives import spare_archives
from ixion.spark.commit import write_batch
from ixion.spark.outgoing import check_columns, only_written, outgoing
from ixion.spark.sink_options import SinkOptions
from ixion.spark.staging import BatchId, Part, remove_topic, write_part

if TYPE_CHECKING:
    import pyarrow

QUERY = "sql.streaming.queryId"  # local properties of a task of a stream
BATCH = "streaming.sql.batchId"


class Written(WriterCommitMessage):
    def __init__(self, part: Part | None) -> None:
        self.part = part  # None: the task has sent its rows


class BatchWriter(DataSourceArrowWriter):
    """All rows of the frame in one transaction. With `txnAppId` and `txnVersion`, at most once for each version."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        check(options, schema, overwrite)
        spare_archives()
        self._options = options
        self._batch = BatchId(options.app, options.version) if options.app else BatchId(str(uuid.uuid4()), 0)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        return write(self._options, self._batch, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.exactly_once:
            write_batch(self._options, self._batch, parts_of(messages), is_marked=bool(self._options.app))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        abort(self._options, messages)


class StreamWriter(DataSourceArrowWriter, DataSourceStreamWriter):
    """Each batch in one transaction, at most once for each number of a query. Spark 4.0 asks only the first of its
    classes whether a writer takes Arrow, and calls the methods of the second."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        check(options, schema, overwrite)
        if options.app:
            raise ValueError("txnAppId and txnVersion are not for a stream: its query and its batches have ids")
        spare_archives()
        self._options = options

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        return write(self._options, batch_of_task(), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # type: ignore[override] # noqa: N803
        parts = parts_of(messages)
        if not self._options.exactly_once or not parts:
            return
        batch = parts[0].batch
        if batch.number != batchId:
            raise RuntimeError(f"Spark commits batch {batchId}, and its tasks wrote {batch}")
        write_batch(self._options, batch, parts)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # type: ignore[override] # noqa: ARG002, N803
        abort(self._options, messages)


def check(options: SinkOptions, schema: StructType, overwrite: bool) -> None:
    if overwrite:
        raise ValueError("a topic cannot be overwritten; use mode append")
    check_columns({field.name: field.dataType.simpleString() for field in schema.fields}, options.topic)


def batch_of_task() -> BatchId:
    context = TaskContext.get()
    query = context and context.getLocalProperty(QUERY)
    number = context and context.getLocalProperty(BATCH)
    if not query or not number:
        raise RuntimeError("this Spark does not tell its tasks which batch they write; use delivery=at-least-once")
    return BatchId(query, int(number))


def write(options: SinkOptions, batch: BatchId, rows: Iterable[pyarrow.RecordBatch]) -> Written:
    spare_archives()
    written = map(only_written, rows)
    if options.exactly_once:
        return Written(write_part(options, batch, written))
    send(options, written)
    return Written(None)


def send(options: SinkOptions, rows: Iterable[pyarrow.RecordBatch]) -> None:
    from ixion.clients import Producer

    with Producer(
        options.bootstrap,
        compression=options.compression,
        max_request_size=options.max_record_bytes,
        **options.client,
    ) as producer:
        for some in rows:
            for each in outgoing(some, options.topic):
                producer.send(each.topic, each.value, key=each.key, headers=each.headers, partition=each.partition)
        producer.flush(options.timeout_s)


def parts_of(messages: Sequence[WriterCommitMessage | None]) -> list[Part]:
    return [each.part for each in messages if isinstance(each, Written) and each.part is not None]


def abort(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    parts = parts_of(messages)
    if any(part.offsets for part in parts):
        remove_topic(options, parts[0].batch)
