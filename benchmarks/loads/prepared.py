"""Frames made beforehand, and the compiled program that sends them (`repeat.c`)."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from ixion.language.wire.client import ClientConnection

SOURCE = Path(__file__).with_name("repeat.c")
LONGEST_S = 300.0  # of one measurement: a broker that stopped answering ends it


class Answered(NamedTuple):
    seconds: float
    bytes: int
    p50_us: float
    p99_us: float


def compile_repeat(folder: Path) -> Path:
    program = folder / "repeat"
    subprocess.run(["cc", "-O2", "-o", str(program), str(SOURCE)], check=True)
    return program


def repeat(program: Path, port: int, frames: bytes, *, connections: int, window: int, requests: int) -> Answered:
    """FRAMES: one, or several that are sent in turn."""
    words = [str(program), str(port), str(connections), str(window), str(requests)]
    done = subprocess.run(words, input=frames, capture_output=True, check=False, timeout=LONGEST_S)
    if done.returncode:
        raise RuntimeError(done.stderr.decode().strip())
    seconds, count, p50_us, p99_us = done.stdout.split()
    return Answered(float(seconds), int(count), float(p50_us), float(p99_us))


def framed(key: ApiKey, version: int, body: Struct) -> bytes:
    _, parts = ClientConnection("limits").request(int(key), version, body)
    return b"".join(parts)


def produce_request(topic: str, records: int, size: int, partition: int = 0) -> Struct:
    builder = BatchBuilder()
    value, now_ms = os.urandom(size), time.time_ns() // 1_000_000
    for _ in range(records):
        builder.append(None, value, timestamp=now_ms)
    data = PartitionProduceData(index=partition, records=builder.build())
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),))


def fetch_request(topic: str, max_bytes: int) -> Struct:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    return _fetch(topic, (partition,), max_bytes=max_bytes, max_wait_ms=500, min_bytes=1)


def fetch_all_request(topic: str, offsets: Mapping[int, int], session: tuple[int, int] = (0, -1)) -> FetchRequest:
    """These partitions, each from its offset on, answered at once. SESSION: id and epoch; (0, 0) begins one."""
    wanted = [
        FetchPartition(partition=each, fetch_offset=offset, partition_max_bytes=1 << 20)
        for each, offset in offsets.items()
    ]
    return _fetch(topic, tuple(wanted), max_bytes=50 << 20, max_wait_ms=0, min_bytes=0, session=session)


def fetch_session_request(session_id: int, epoch: int) -> FetchRequest:
    """The next request of a session in which nothing has changed for the client."""
    return _fetch("", (), max_bytes=50 << 20, max_wait_ms=0, min_bytes=0, session=(session_id, epoch))


def _fetch(
    topic: str,
    partitions: tuple[FetchPartition, ...],
    *,
    max_bytes: int,
    max_wait_ms: int,
    min_bytes: int,
    session: tuple[int, int] = (0, -1),
) -> FetchRequest:
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=(FetchTopic(topic=topic, partitions=partitions),) if partitions else (),
    )


def create_topics_request(topic: str, partitions: int) -> Struct:
    wish = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
    return CreateTopicsRequest(topics=(wish,), timeout_ms=300_000)


def create_partitions_request(topic: str, count: int) -> Struct:
    wish = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    return CreatePartitionsRequest(topics=(wish,), timeout_ms=300_000, validate_only=False)


def api_versions_request(_topic: str) -> Struct:
    return ApiVersionsRequest(client_software_name="limits", client_software_version="1")


def ask(port: int, key: ApiKey, version: int, body: Struct, timeout_s: float = 60) -> Struct:
    """One exchange over a connection of its own."""
    client = ClientConnection("limits")
    _, parts = client.request(int(key), version, body)
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(b"".join(parts))
        while (answer := client.next_answer()) is None:
            received = connection.recv(1 << 20)
            if not received:
                raise ConnectionError(f"the broker closed the connection instead of answering {key.name}")
            client.receive(received)
    return answer.decode()


def check_answer(port: int, key: ApiKey, version: int, body: Struct) -> Struct:
    """One exchange: the broker does what is measured, and does not refuse it."""
    decoded = ask(port, key, version, body)
    codes: list[int] = []
    if key == ApiKey.PRODUCE:
        for produced in cast(ProduceResponse, decoded).responses:
            codes += [partition.error_code for partition in produced.partition_responses]
    elif key == ApiKey.FETCH:
        codes.append(cast(FetchResponse, decoded).error_code)
        for fetched in cast(FetchResponse, decoded).responses:
            codes += [partition.error_code for partition in fetched.partitions]
    if any(codes):
        raise RuntimeError(f"the broker answers {sorted(set(codes))} to {key.name}")
    return decoded
