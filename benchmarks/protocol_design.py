"""Two ways to read a message in a known version: a tree of compiled objects, or Python source made for that version.

The source below is what a generator would write for a Produce request of version 9: one function, everything in line,
the same values built, the same lengths checked (though not the UTF-8 of strings before they are decoded, nor the whole
frame before the first value is built, which the tree does). The tree won, so there is no generator.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from benchmarks.protocol import measured, produce_request
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.registry import ApiKey

TREE, SOURCE = "tree of compiled objects", "generated source"

ACKS_AND_TIMEOUT = struct.Struct(">hi").unpack_from
INDEX = struct.Struct(">i").unpack_from
NO_ID = bytes(16)


class BadFrame(Exception):  # noqa: N818 (it stands in for DecodeError)
    pass


def uvarint(data: bytes, pos: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, pos
        shift += 7
        if shift > 28:
            raise BadFrame


def read_produce_9(data: bytes, pos: int, end: int) -> Any:
    view = memoryview(data)
    request: Any = ProduceRequest.draft()
    size = data[pos]
    pos += 1
    if size > 127:
        size, pos = uvarint(data, pos - 1)
    if size == 0:
        request.transactional_id = None
    else:
        stop = pos + size - 1
        if stop > end:
            raise BadFrame
        request.transactional_id = data[pos:stop].decode()
        pos = stop
    request.acks, request.timeout_ms = ACKS_AND_TIMEOUT(data, pos)
    pos += 6
    count = data[pos]
    pos += 1
    if count > 127:
        count, pos = uvarint(data, pos - 1)
    if count == 0 or (count - 1) * 3 > end - pos:
        raise BadFrame
    topics = []
    for _ in range(count - 1):
        topic: Any = TopicProduceData.draft()
        size = data[pos]
        pos += 1
        if size > 127:
            size, pos = uvarint(data, pos - 1)
        stop = pos + size - 1
        if size == 0 or stop > end:
            raise BadFrame
        topic.name = data[pos:stop].decode()
        pos = stop
        topic.topic_id = NO_ID
        count = data[pos]
        pos += 1
        if count > 127:
            count, pos = uvarint(data, pos - 1)
        if count == 0 or (count - 1) * 6 > end - pos:
            raise BadFrame
        partitions = []
        for _ in range(count - 1):
            partition: Any = PartitionProduceData.draft()
            (partition.index,) = INDEX(data, pos)
            pos += 4
            size = data[pos]
            pos += 1
            if size > 127:
                size, pos = uvarint(data, pos - 1)
            if size == 0:
                partition.records = None
            else:
                stop = pos + size - 1
                if stop > end:
                    raise BadFrame
                partition.records = view[pos:stop]
                pos = stop
            if data[pos]:
                raise BadFrame
            pos += 1
            partition.__class__ = PartitionProduceData
            partitions.append(partition)
        topic.partition_data = tuple(partitions)
        if data[pos]:
            raise BadFrame
        pos += 1
        topic.__class__ = TopicProduceData
        topics.append(topic)
    request.topic_data = tuple(topics)
    if data[pos] or pos + 1 != end:
        raise BadFrame
    request.__class__ = ProduceRequest
    return request


def contenders(session: Session) -> Mapping[str, Contender]:
    seconds = 0.02 if session.quick else 0.3
    codec = ApiKey.PRODUCE.request(9)
    frame = codec.encode(produce_request())
    assert read_produce_9(frame, 0, len(frame)) == codec.decode(frame)
    jobs = {TREE: partial(codec.decode, frame), SOURCE: partial(read_produce_9, frame, 0, len(frame))}
    return {name: partial(measured, [("read", job)], seconds) for name, job in jobs.items()}


BENCHMARK = Benchmark(
    name="protocol_design",
    title="Reading a Produce request, two designs",
    rows=(Row(key="read", label="read Produce request v9", unit="µs"),),
    goals=(Goal(label="the tree is the quicker one", value=("read", TREE), base=("read", SOURCE), at_most=1.0),),
    baseline=TREE,
    contenders=contenders,
)
