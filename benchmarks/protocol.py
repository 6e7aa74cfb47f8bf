"""Reading requests and writing responses, as a broker does all day, against the Python libraries that can do it too.

A classic version and a flexible one of each API; aiokafka speaks only the classic ones. Everybody reads the same bytes
and writes what they mean. ixion alone proves a frame sound before it builds anything from it.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from ixion.language.protocol.messages import k00_produce, k01_fetch, k03_metadata
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

OURS, KIO, KAFKA_PYTHON, AIOKAFKA = "ixion", "kio", "kafka-python", "aiokafka"
VERSIONS = {ApiKey.PRODUCE: (7, 9), ApiKey.FETCH: (11, 12), ApiKey.METADATA: (5, 12)}
ENVELOPE = "ixion.language.protocol.envelope"
IMPORT = f"import time; t = time.process_time(); import {ENVELOPE}; print((time.process_time() - t) * 1000)"
Job = tuple[str, Callable[[], object]]


def produce_request() -> Struct:
    partition = k00_produce.PartitionProduceData(index=0, records=bytes(1000))
    topic = k00_produce.TopicProduceData(name="orders", partition_data=(partition,))
    return k00_produce.ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=(topic,))


def produce_response() -> Struct:
    partition = k00_produce.PartitionProduceResponse(index=0, error_code=0, base_offset=123_456, log_start_offset=0)
    topic = k00_produce.TopicProduceResponse(name="orders", partition_responses=(partition,))
    return k00_produce.ProduceResponse(responses=(topic,), throttle_time_ms=0)


def fetch_request() -> Struct:
    partitions = tuple(
        k01_fetch.FetchPartition(partition=index, fetch_offset=123_456, partition_max_bytes=1 << 20)
        for index in range(10)
    )
    topic = k01_fetch.FetchTopic(topic="orders", partitions=partitions)
    return k01_fetch.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 26, topics=(topic,))


def fetch_response() -> Struct:
    partitions = tuple(
        k01_fetch.PartitionData(
            partition_index=index, error_code=0, high_watermark=123_456, aborted_transactions=None, records=bytes(1000)
        )
        for index in range(10)
    )
    topic = k01_fetch.FetchableTopicResponse(topic="orders", partitions=partitions)
    return k01_fetch.FetchResponse(throttle_time_ms=0, responses=(topic,))


def metadata_request() -> Struct:
    topics = tuple(k03_metadata.MetadataRequestTopic(name=f"orders-{number}") for number in range(10))
    return k03_metadata.MetadataRequest(topics=topics)


def metadata_response() -> Struct:
    brokers = tuple(
        k03_metadata.MetadataResponseBroker(node_id=node, host=f"broker-{node}", port=9092, rack=None)
        for node in range(3)
    )
    partitions = tuple(
        k03_metadata.MetadataResponsePartition(
            error_code=0, partition_index=index, leader_id=1, replica_nodes=(0, 1, 2), isr_nodes=(0, 1, 2)
        )
        for index in range(3)
    )
    topics = tuple(
        k03_metadata.MetadataResponseTopic(error_code=0, name=f"orders-{number}", partitions=partitions)
        for number in range(10)
    )
    return k03_metadata.MetadataResponse(brokers=brokers, cluster_id="a", controller_id=1, topics=topics)


REQUESTS = {ApiKey.PRODUCE: produce_request, ApiKey.FETCH: fetch_request, ApiKey.METADATA: metadata_request}
RESPONSES = {ApiKey.PRODUCE: produce_response, ApiKey.FETCH: fetch_response, ApiKey.METADATA: metadata_response}


def messages() -> Iterator[tuple[str, ApiKey, int, bytes, bytes]]:
    """Row key, API, version, a request and a response as bytes."""
    for api, versions in VERSIONS.items():
        for version in versions:
            key = f"{api.name.lower()}_{version}"
            request, response = REQUESTS[api](), RESPONSES[api]()
            yield key, api, version, api.request(version).encode(request), api.response(version).encode(response)


def ours() -> Iterator[Job]:
    for key, api, version, request, response in messages():
        reader, writer = api.request(version), api.response(version)
        value = writer.decode(response)
        yield f"read_{key}", partial(reader.decode, request)
        yield f"write_{key}", partial(writer.encode_parts, value)


def kio() -> Iterator[Job]:
    from kio.serial import entity_reader, entity_writer

    for key, api, version, request, response in messages():
        module = f"kio.schema.{api.name.lower()}.v{version}"
        asked: Any = getattr(import_module(f"{module}.request"), f"{api.title}Request")
        answered: Any = getattr(import_module(f"{module}.response"), f"{api.title}Response")
        reader, writer = entity_reader(asked), entity_writer(answered)
        value = entity_reader(answered)(response, 0)[0]
        yield f"read_{key}", partial(reader, request, 0)
        yield f"write_{key}", partial(to_bytes, writer, value)


def to_bytes(writer: Callable[[io.BytesIO, Any], object], value: object) -> bytes:
    buffer = io.BytesIO()
    writer(buffer, value)
    return buffer.getvalue()


def kafka_python() -> Iterator[Job]:
    homes = {ApiKey.PRODUCE: "producer", ApiKey.FETCH: "consumer", ApiKey.METADATA: "metadata"}
    for key, api, version, request, response in messages():
        module = import_module(f"kafka.protocol.{homes[api]}")
        asked, answered = getattr(module, f"{api.title}Request"), getattr(module, f"{api.title}Response")
        value = answered.decode(response, version=version)
        value._header = None  # encoding asks for it; decoding without a header leaves it out
        yield f"read_{key}", partial(asked.decode, request, version=version)
        yield f"write_{key}", partial(value.encode, version=version)


def aiokafka() -> Iterator[Job]:
    for key, api, version, request, response in messages():
        if version != VERSIONS[api][0]:
            continue
        module = import_module(f"aiokafka.protocol.{api.name.lower()}")
        asked, answered = (getattr(module, f"{api.title}{side}_v{version}") for side in ("Request", "Response"))
        value = answered.decode(io.BytesIO(response))
        yield f"read_{key}", partial(from_bytes, asked, request)
        yield f"write_{key}", value.encode


def from_bytes(message: Any, data: bytes) -> object:
    return message.decode(io.BytesIO(data))


def measured(jobs: list[Job], seconds: float) -> Mapping[str, float]:
    """Microseconds a call: the median of slices, so that one pause of the machine does not count."""
    result = {}
    for key, job in jobs:
        start = time.perf_counter()
        job()
        count = max(1, int(0.002 / max(time.perf_counter() - start, 1e-7)))
        slices: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or not slices:
            start = time.perf_counter()
            for _ in range(count):
                job()
            slices.append((time.perf_counter() - start) / count)
        result[key] = sorted(slices)[len(slices) // 2] * 1e6
    return result


def with_import(jobs: list[Job], seconds: float) -> Mapping[str, float]:
    """What all messages cost, and what it costs to import the package in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    return {**measured(jobs, seconds), "import": float(done.stdout)}


def contenders(session: Session) -> dict[str, Contender]:
    seconds = 0.01 if session.quick else 0.1
    found = {OURS: list(ours()), KIO: list(kio()), KAFKA_PYTHON: list(kafka_python()), AIOKAFKA: list(aiokafka())}
    return {name: partial(with_import if name == OURS else measured, jobs, seconds) for name, jobs in found.items()}


def rows(verb: str, side: str) -> tuple[Row, ...]:
    return tuple(
        Row(key=f"{verb}_{api.name.lower()}_{version}", label=f"{verb} {api.title} {side} v{version}", unit="µs")
        for api, versions in VERSIONS.items()
        for version in versions
    )


BENCHMARK = Benchmark(
    name="protocol",
    title="Messages of the protocol",
    rows=(
        *rows("read", "request"),
        *rows("write", "response"),
        Row(key="import", label="import ixion.language.protocol.envelope", unit="ms", charted=False),
    ),
    goals=(
        Goal(
            label="a Produce request is read, and proved sound, in at most twice kio's time",
            value=("read_produce_9", OURS),
            base=("read_produce_9", KIO),
            at_most=2.0,
        ),
        *(
            Goal(
                label=f"a {api.title} response is written in at most a fifth of kio's time",
                value=(f"write_{api.name.lower()}_{versions[1]}", OURS),
                base=(f"write_{api.name.lower()}_{versions[1]}", KIO),
                at_most=0.2,
            )
            for api, versions in VERSIONS.items()
        ),
        Goal(label="imported in at most 30 ms", value=("import", OURS), base=30.0, at_most=1.0),
    ),
    baseline=OURS,
    contenders=contenders,
)
