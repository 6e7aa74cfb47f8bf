"""Frames made beforehand, and the compiled program that sends them (`repeat.c`)."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple, cast

from ixion.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ixion.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.records.builder import BatchBuilder
from ixion.wire.client import ClientConnection

SOURCE = Path(__file__).with_name("repeat.c")


class Answered(NamedTuple):
    seconds: float
    bytes: int


def compile_repeat(folder: Path) -> Path:
    program = folder / "repeat"
    subprocess.run(["cc", "-O2", "-o", str(program), str(SOURCE)], check=True)
    return program


def repeat(program: Path, port: int, frame: bytes, *, connections: int, window: int, requests: int) -> Answered:
    words = [str(program), str(port), str(connections), str(window), str(requests)]
    done = subprocess.run(words, input=frame, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode().strip())
    seconds, count = done.stdout.split()
    return Answered(float(seconds), int(count))


def framed(key: ApiKey, version: int, body: Struct) -> bytes:
    _, parts = ClientConnection("limits").request(int(key), version, body, 0)
    return b"".join(parts)


def produce_request(topic: str, records: int, size: int) -> Struct:
    builder = BatchBuilder()
    value, now_ms = os.urandom(size), time.time_ns() // 1_000_000
    for _ in range(records):
        builder.append(None, value, timestamp=now_ms)
    data = PartitionProduceData(index=0, records=builder.build())
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),))


def fetch_request(topic: str, max_bytes: int) -> Struct:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),),
    )


def api_versions_request(_topic: str) -> Struct:
    return ApiVersionsRequest(client_software_name="limits", client_software_version="1")


def check_answer(port: int, key: ApiKey, version: int, body: Struct) -> None:
    """One exchange: the broker does what is measured, and does not refuse it."""
    client = ClientConnection("limits")
    _, parts = client.request(int(key), version, body, 0)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"".join(parts))
        while (answer := client.next_answer()) is None:
            client.receive(connection.recv(1 << 20))
    decoded = answer.decode()
    codes: list[int] = []
    if key == ApiKey.PRODUCE:
        for produced in cast(ProduceResponse, decoded).responses:
            codes += [partition.error_code for partition in produced.partition_responses]
    elif key == ApiKey.FETCH:
        for fetched in cast(FetchResponse, decoded).responses:
            codes += [partition.error_code for partition in fetched.partitions]
    if any(codes):
        raise RuntimeError(f"the broker answers {codes} to {key.name}")
