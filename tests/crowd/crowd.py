"""Very many connections at once: those that do nothing, and those that ask for much and read nothing.

Use it to measure memory and delays under a crowd of sockets; for crowds of members and ids, use `ids`.
"""

from __future__ import annotations

import resource
import socket
import time

from ixion.language.protocol.envelope import decode_response
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.hostile.inputs import asked
from tests.hostile.witness import HELLO, connect, take
from tests.log.support import batch

TOPIC = "crowd"
RECORD = 100_000  # bytes
RECORDS = 50


def allow_many_files() -> int:
    """As many as may be had; how many that is."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def fill(bootstrap: str) -> None:
    """A topic with five megabytes in it."""
    with connect(bootstrap) as client:
        client.sendall(asked(3, 9, MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))))
        take(client)
        for _ in range(RECORDS):
            part = PartitionProduceData(index=0, records=batch(bytes(RECORD)))
            data = TopicProduceData(name=TOPIC, partition_data=(part,))
            client.sendall(asked(0, 9, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,))))
            take(client)


def idle(bootstrap: str, count: int) -> list[socket.socket]:
    return [connect(bootstrap) for _ in range(count)]


def slow(bootstrap: str, count: int) -> list[socket.socket]:
    """Each asks for all of the topic, three times over, and reads none of it."""
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=RECORD * RECORDS * 2)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=RECORD * RECORDS * 2,
        topics=(FetchTopic(topic=TOPIC, partitions=(place,)),),
        forgotten_topics_data=(),
    )
    made = []
    host, _, port = bootstrap.rpartition(":")
    for _ in range(count):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, int(port)))
        client.sendall(HELLO)
        take(client)
        client.sendall(asked(1, 11, request) * 3)
        made.append(client)
    return made


def delays_ms(bootstrap: str, count: int) -> list[float]:
    """How long produces of one record with acks=all take, one after the other; sorted."""
    part = PartitionProduceData(index=0, records=batch(b"v" * 100))
    data = TopicProduceData(name="others", partition_data=(part,))
    request = asked(0, 9, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,)))
    found = []
    with connect(bootstrap) as client:
        client.sendall(asked(3, 9, MetadataRequest(topics=(MetadataRequestTopic(name="others"),))))
        take(client)
        for _ in range(count):
            begun = time.perf_counter()
            client.sendall(request)
            answer = take(client)
            found.append((time.perf_counter() - begun) * 1e3)
            assert answer is not None
            _, body = decode_response(0, 9, answer)
            assert isinstance(body, ProduceResponse)
            assert body.responses[0].partition_responses[0].error_code == 0
    return sorted(found)


def p99(delays: list[float]) -> float:
    return delays[int(len(delays) * 0.99)]


def close(crowd: list[socket.socket]) -> None:
    for each in crowd:
        each.close()
