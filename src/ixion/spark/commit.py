"""Writes a batch into topics exactly once: in one transaction, together with a mark that says which batch it was.

The mark is a record in a compacted topic (`ixion-batches`): its key is the writer, its value the number of the batch,
how many records it had, and a sum over them. The driver commits batch 7 like this:

    1. It takes the transactional id of the writer. The broker ends a transaction that an earlier driver left open, and
       refuses an earlier driver that still lives.
    2. It reads the writer's last mark.  A  none, or of a batch before 7: go on.  B  of batch 7: it has been written.
       C  of a later batch: the query was set back. Its batches have other rows now, so it is refused.
    3. It sends the records and the mark, and commits.

A driver that dies before the commit leaves nothing that a reader of committed records sees; after it, the next driver
finds the mark. In case B the records are counted and summed again, without being sent: if they differ, the checkpoint
was set back by one batch, or the query computes other rows each time (`rand()`, `uuid()`). Nothing can tell these
apart, so the batch is refused, unless `repeatedBatch` is "skip".

A mark does not expire, as offsets of a group would. So a writer without a mark begins with batch 0; for any other,
`firstBatch` has to say so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from zlib import crc32

from ixion.clients import Producer
from ixion.clients.admin.configs import Resource, describe_configs
from ixion.clients.admin.offsets import EARLIEST, LATEST
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import offsets_at
from ixion.clients.admin.topics import NewTopic, create_topics
from ixion.clients.consumer.ranges import read_ranges
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import TopicPartition
from ixion.clients.security import split_security
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.spark.outgoing import Outgoing, outgoing
from ixion.spark.sink_options import SinkOptions
from ixion.spark.staging import BatchId, Part, connect, create, read_parts, remove_topic

PAUSE_S: Final = 0.05
# Small segments: compaction leaves the newest one alone, and each commit reads the topic.
BATCHES_SETTINGS: Final = {"cleanup.policy": "compact", "segment.bytes": str(1024 * 1024)}


class Mark(NamedTuple):
    number: int
    records: int
    total: int  # of the checksums of all records, in any order

    def to_json(self) -> bytes:
        return json.dumps({"batch": self.number, "records": self.records, "sum": f"{self.total:016x}"}).encode()


def write_batch(options: SinkOptions, batch: BatchId, parts: list[Part], *, is_marked: bool = True) -> None:
    """Writes the parts as one batch, if it has not been written yet. Without a mark it is not asked."""
    with Producer(
        options.bootstrap,
        transactional_id=f"ixion-{batch.writer}",
        transaction_timeout_ms=options.transaction_ms,
        compression=options.compression,
        max_request_size=options.max_record_bytes,
        **options.client,
    ) as producer:
        producer.init_transactions(options.timeout_s)  # step 1
        last = None
        if is_marked:
            with connect(options) as admin:
                need_batches_topic(admin, options)
                last = last_mark(admin, options, batch.writer)  # step 2
            check_order(options, batch, last)
        records = read_records(options, parts)
        if last is not None and last.number == batch.number:
            check_same(options, batch, last, records)  # case B
        else:
            send(producer, options, batch, records, is_marked=is_marked)  # step 3
    if any(part.offsets for part in parts):
        remove_topic(options, batch)


def send(
    producer: Producer, options: SinkOptions, batch: BatchId, records: Iterable[Outgoing], *, is_marked: bool
) -> None:
    with producer.transaction():
        count = total = 0
        for each in records:
            producer.send(each.topic, each.value, key=each.key, headers=each.headers, partition=each.partition)
            count += 1
            total += checksum(each)
        # The mark comes last: until the transaction ends, it holds up other writers that look for theirs.
        producer.flush()
        if is_marked:
            mark = Mark(batch.number, count, total % 2**64)
            producer.send(options.batches_topic, mark.to_json(), key=batch.writer.encode(), partition=0)


def read_records(options: SinkOptions, parts: list[Part]) -> Iterator[Outgoing]:
    for rows in read_parts(options, parts):
        yield from outgoing(rows, options.topic)


def checksum(record: Outgoing) -> int:
    parts = (record.key, record.value, record.topic.encode())
    found = 0
    for part in parts:
        found = crc32(b"" if part is None else b"%d:%b" % (len(part), part), found)
    return found


def check_order(options: SinkOptions, batch: BatchId, last: Mark | None) -> None:
    if last is not None and last.number > batch.number:
        text = (
            f"{batch} comes after batch {last.number}, which is in the topic: the checkpoint is older than the topic; "
            "put the newer one back, or start with a new checkpoint, which writes its records again"
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if last is None and batch.number not in (0, options.first_batch):
        text = (
            f"{options.batches_topic} has no mark of {batch.writer}, so it is unknown whether batch {batch.number} is "
            f"in the topic already; if it is not, write with firstBatch={batch.number}"
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def check_same(options: SinkOptions, batch: BatchId, last: Mark, records: Iterable[Outgoing]) -> None:
    """Case B: the batch is in the topic. KafkaError if it had other records."""
    if options.skips_other_rows:
        return
    count = total = 0
    for each in records:
        count += 1
        total += checksum(each)
    if (count, total % 2**64) != (last.records, last.total):
        text = (
            f"{batch} is in the topic with {last.records} records, and has {count} others now: the checkpoint is older "
            "than the topic, or the query computes other rows each time; repeatedBatch=skip takes it for written"
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def need_batches_topic(admin: AdminRunner, options: SinkOptions) -> None:
    """Makes the topic of marks. KafkaError if it exists and its records expire."""
    name = options.batches_topic
    resource = Resource(ResourceType.TOPIC, name)
    found = admin.run(describe_configs, [resource])
    if isinstance(found.faults.get(resource), UnknownTopicError):
        create(admin.run(create_topics, [NewTopic(name, 1, configs=BATCHES_SETTINGS)]).faults.get(name))
        found = admin.run(describe_configs, [resource])
    policy = {each.name: each.value for each in found[resource]}.get("cleanup.policy")
    if policy != "compact":
        text = f"the topic {name} has cleanup.policy={policy}; it must be compact, or marks are lost"
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)


def last_mark(admin: AdminRunner, options: SinkOptions, writer: str) -> Mark | None:
    place = TopicPartition(options.batches_topic, 0)
    start = admin.run(offsets_at, [place], EARLIEST, False)[place]
    end = admin.run(offsets_at, [place], LATEST, False)[place]
    await_stable(admin, options, place, end)
    security, more = split_security(options.client)
    found = read_ranges(
        options.bootstrap,
        {place: (start, end)},
        read_committed=True,
        patience_s=options.timeout_s,
        security=security,
        client_id=more["client_id"],
    )
    key = writer.encode()
    last: Mark | None = None
    for _, columns in found:
        for row in range(len(columns)):
            value = columns.values[row]
            if columns.keys[row] == key and value is not None:
                last = read_mark(place, value)
    return last


def read_mark(place: TopicPartition, value: bytes) -> Mark:
    try:
        found = json.loads(value)
        return Mark(int(found["batch"]), int(found["records"]), int(found["sum"], 16))
    except (ValueError, KeyError, TypeError):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{place} has a record that is no mark: {value[:100]!r}") from None


def await_stable(admin: AdminRunner, options: SinkOptions, place: TopicPartition, end: int) -> None:
    """Waits until no open transaction hides a mark before END. That of a driver which was killed just there ends with
    its timeout, or as soon as its query is started again."""
    until_s = time.monotonic() + options.transaction_ms / 1000 + options.timeout_s
    while admin.run(offsets_at, [place], LATEST, True)[place] < end:
        if time.monotonic() > until_s:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"a transaction of another writer is open in {place}")
        time.sleep(PAUSE_S)
