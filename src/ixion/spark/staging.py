"""Carries the rows of tasks to the driver, which writes them in one transaction.

A task has no part in the transaction: its rows reach the driver as pieces, Arrow batches of about half a megabyte. Up
to 256 KB of a task come with the message that tells Spark that it is done. The rest goes through a topic on the same
cluster, made for this batch and deleted after it. Tasks that failed leave pieces there that no message names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from ixion.clients.admin.runner import AdminRunner
from ixion.clients.consumer.ranges import read_ranges
from ixion.clients.metadata import TopicPartition
from ixion.clients.security import split_security
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow

PIECE_BYTES: Final = 512 * 1024  # before compression
INLINE_BYTES: Final = 256 * 1024  # of one task; all of them are in the driver's memory at once
PARTITIONS: Final = 4
LARGEST_PIECE: Final = 64 * 1024 * 1024  # a piece holds at least one row, however large
KEPT_MS: Final = 24 * 60 * 60 * 1000  # if nobody deletes the topic


class BatchId(NamedTuple):
    """Which batch of which writer: the query and its batch, or txnAppId and txnVersion."""

    writer: str
    number: int

    def __str__(self) -> str:
        return f"batch {self.number} of {self.writer}"


class Part(NamedTuple):
    """What one task has written."""

    batch: BatchId
    pieces: tuple[bytes, ...]
    partition: int  # of the topic, for the rest
    offsets: tuple[int, ...]


def staging_topic(options: SinkOptions, batch: BatchId) -> str:
    digest = hashlib.sha256(f"{batch.writer}\0{batch.number}".encode()).hexdigest()[:24]
    return f"{options.batches_topic}-{digest}"


def write_part(options: SinkOptions, batch: BatchId, rows: Iterable[pyarrow.RecordBatch]) -> Part:
    """In a task."""
    from ixion.clients import DeliveryFuture, Producer

    topic = staging_topic(options, batch)
    pieces: list[bytes] = []
    kept = 0
    producer: Producer | None = None
    partition = 0
    futures: list[DeliveryFuture] = []
    try:
        for piece in cut(rows):
            if producer is None and kept + len(piece) <= INLINE_BYTES:
                pieces.append(piece)
                kept += len(piece)
                continue
            if producer is None:
                make_topic(options, topic)
                producer = Producer(
                    options.bootstrap, max_request_size=LARGEST_PIECE, buffer_memory=2 * LARGEST_PIECE, **options.client
                )
                partition = crc32(piece) % PARTITIONS
            futures.append(producer.send(topic, piece, partition=partition))
        offsets = tuple(future.result(options.timeout_s).offset for future in futures)
    finally:
        if producer is not None:
            producer.close(options.timeout_s)
    return Part(batch, tuple(pieces), partition, offsets)


def cut(rows: Iterable[pyarrow.RecordBatch]) -> Iterator[bytes]:
    import pyarrow as pa

    for batch in rows:
        if batch.num_rows == 0:
            continue
        size = max(1, batch.num_rows * PIECE_BYTES // max(batch.nbytes, 1))
        for start in range(0, batch.num_rows, size):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
                stream.write_batch(batch.slice(start, size))
            yield sink.getvalue().to_pybytes()


def make_topic(options: SinkOptions, topic: str) -> None:
    from ixion.clients.admin.topics import NewTopic, create_topics

    settings = {"retention.ms": str(KEPT_MS), "max.message.bytes": str(LARGEST_PIECE)}
    with connect(options) as admin:
        create(admin.run(create_topics, [NewTopic(topic, PARTITIONS, configs=settings)]).faults.get(topic))


def create(fault: KafkaError | None) -> None:
    if fault is not None and fault.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise fault


def read_parts(options: SinkOptions, parts: Iterable[Part]) -> Iterator[pyarrow.RecordBatch]:
    """The rows of all parts, in the driver. KafkaError if a piece is gone."""
    import pyarrow as pa

    staged: dict[TopicPartition, set[int]] = {}
    for part in parts:
        for piece in part.pieces:
            yield from pa.ipc.open_stream(piece)
        if part.offsets:
            place = TopicPartition(staging_topic(options, part.batch), part.partition)
            staged.setdefault(place, set()).update(part.offsets)
    if not staged:
        return
    security, more = split_security(options.client)
    found = read_ranges(
        options.bootstrap,
        {place: (min(offsets), max(offsets) + 1) for place, offsets in staged.items()},
        patience_s=options.timeout_s,
        security=security,
        client_id=more["client_id"],
    )
    for place, columns in found:
        wanted = staged[place]
        for row, offset in enumerate(columns.offsets):
            value = columns.values[row]
            if offset in wanted and value is not None:
                wanted.remove(offset)
                yield from pa.ipc.open_stream(value)
    for place, missing in staged.items():
        if missing:
            text = f"{len(missing)} pieces of the batch are no longer in {place}; the batch must be run again"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)


def remove_topic(options: SinkOptions, batch: BatchId) -> None:
    """Deletes the topic of a batch. If that fails, it stays: its records are deleted after a day."""
    from ixion.clients.admin.topics import delete_topics

    topic = staging_topic(options, batch)
    try:
        with connect(options) as admin:
            admin.run(delete_topics, [topic])
    except KafkaError:
        pass


def connect(options: SinkOptions) -> AdminRunner:
    timeout_ms = options.timeout_s * 1000
    return AdminRunner(
        options.bootstrap, default_api_timeout_ms=timeout_ms, request_timeout_ms=timeout_ms, **options.client
    )
