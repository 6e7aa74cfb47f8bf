"""The points of the curves: each function measures one broker at one number of clients or partitions, or one size.

Frames are made beforehand and sent by the compiled program (`repeat.c`). A point answers {name: value};
`benchmarks.curves` says what each name is.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

from benchmarks.loads.broker_servers import Server
from benchmarks.loads.crowd import idle
from benchmarks.loads.prepared import (
    ask,
    check_answer,
    create_partitions_request,
    create_topics_request,
    fetch_all_request,
    fetch_request,
    fetch_session_request,
    framed,
    produce_request,
    repeat,
)
from devtools.kafka import answers
from ixion.language.protocol.messages.k00_produce import ProduceResponse
from ixion.language.protocol.messages.k01_fetch import FetchResponse
from ixion.language.protocol.messages.k19_create_topics import CreateTopicsResponse
from ixion.language.protocol.messages.k37_create_partitions import CreatePartitionsResponse
from ixion.language.protocol.registry import ApiKey

PRODUCE, FETCH, CREATE_TOPICS, CREATE_PARTITIONS = 9, 12, 7, 3  # versions; Fetch 13 and later names topics by id
TOPIC = "curve"
SMALL = 100  # bytes of a record
SLICE = 4_096  # bytes of a small fetch
ACTIVE = 50  # clients that are busy while all others are idle
BATCH = 16_384  # bytes of records in a batch, as producers send them by default
OVERHEAD = 8  # bytes of a small record beside its value
FETCHED = 1_000_000  # bytes of a large fetch
WRITTEN = 192 << 20  # bytes of records of one size
IN_REQUEST = 5_000  # partitions
NOT_YET = {7, 8, 14, 15, 41}  # a broker that has just started has no controller, or is none yet
READY_S = 120.0
TRY_S = 0.005

Point = Mapping[str, float]
Life = Callable[[str], AbstractContextManager[Server]]  # a broker on a directory


def port_of(server: Server) -> int:
    return int(server.bootstrap.rsplit(":", 1)[1])


def until_ready(server: Server, topic: str, partition: int) -> float:
    """Seconds from the start of the process to the first record that a partition acknowledges."""
    wish = produce_request(topic, 1, SMALL, partition)
    end = time.time() + READY_S
    while time.time() < end:
        try:
            answer = cast(ProduceResponse, ask(port_of(server), ApiKey.PRODUCE, PRODUCE, wish))
            if answer.responses[0].partition_responses[0].error_code == 0:
                return time.time() - server.started
        except OSError:
            pass
        time.sleep(TRY_S)
    raise RuntimeError(f"no record was acknowledged within {READY_S:.0f} s")


def until_answers(server: Server) -> None:
    end = time.time() + READY_S
    while not answers("127.0.0.1", port_of(server)):
        if time.time() > end:
            raise RuntimeError(f"the broker did not answer within {READY_S:.0f} s")
        time.sleep(TRY_S)


def create(server: Server, topic: str, partitions: int) -> float:
    """Seconds from the request for a topic to the first record in its last partition.

    A controller of Apache Kafka takes less than 10,000 partitions in one request, so the rest is added by another one.
    """
    until_answers(server)
    begun = time.time()
    end = begun + READY_S
    wish = create_topics_request(topic, min(partitions, IN_REQUEST))
    while True:
        answer = ask(port_of(server), ApiKey.CREATE_TOPICS, CREATE_TOPICS, wish, READY_S)
        made = cast(CreateTopicsResponse, answer).topics[0]
        if made.error_code == 0:
            break
        if made.error_code not in NOT_YET or time.time() > end:
            raise RuntimeError(f"the broker answers {made.error_code} to a new topic: {made.error_message}")
        time.sleep(TRY_S)
    until_ready(server, topic, min(partitions, IN_REQUEST) - 1)
    if partitions > IN_REQUEST:
        more = create_partitions_request(topic, partitions)
        answer = ask(port_of(server), ApiKey.CREATE_PARTITIONS, CREATE_PARTITIONS, more, READY_S)
        added = cast(CreatePartitionsResponse, answer).results[0]
        if added.error_code:
            raise RuntimeError(f"the broker answers {added.error_code} to more partitions: {added.error_message}")
    until_ready(server, topic, partitions - 1)
    return time.time() - begun


def clients(program: Path, start: AbstractContextManager[Server], counts: tuple[int, ...], scale: float) -> Point:
    """With so many clients connected: memory of each, and small produces and fetches of a few and of all of them."""
    found: dict[str, float] = {}
    with start as server:
        create(server, TOPIC, 1)
        port = port_of(server)
        frames = {
            "produce": framed(ApiKey.PRODUCE, PRODUCE, produce_request(TOPIC, 1, SMALL)),
            "fetch": framed(ApiKey.FETCH, FETCH, fetch_request(TOPIC, SLICE)),
        }
        repeat(program, port, frames["produce"], connections=ACTIVE, window=1, requests=int(20_000 * scale))
        check_answer(port, ApiKey.FETCH, FETCH, fetch_request(TOPIC, SLICE))
        for count in counts:
            before_mb = server.resident_mb()
            active = min(count, ACTIVE)
            requests = int((10_000 if count == 1 else 30_000) * scale)
            with idle(port, count - active):
                if count > active:
                    found[f"{count}-memory"] = (server.resident_mb() - before_mb) * 1024 / (count - active)
                for kind, frame in frames.items():
                    _send(found, f"{count}-{kind}-few", program, server, frame, active, requests)
            for kind, frame in frames.items():
                _send(found, f"{count}-{kind}-all", program, server, frame, count, max(requests, 2 * count))
    return found


def _send(
    found: dict[str, float],
    name: str,
    program: Path,
    server: Server,
    frames: bytes,
    connections: int,
    requests: int,
) -> None:
    """So many requests, one at a time over each connection: rate, 99th percentile, processor time of each."""
    before_s = server.cpu_seconds()
    answered = repeat(program, port_of(server), frames, connections=connections, window=1, requests=requests)
    found[f"{name}-cpu"] = (server.cpu_seconds() - before_s) / (requests + connections) * 1e6
    found[f"{name}-rate"] = requests / answered.seconds
    found[f"{name}-p99"] = answered.p99_us / 1000


def partitions(program: Path, folder: str, life: Life, count: int, scale: float) -> Point:
    """With a topic of so many partitions: creation, memory, writes to all of them, reads of all of them, starts."""
    found: dict[str, float] = {}
    with life(folder) as server:
        create(server, "first", 1)
        found["create"] = create(server, TOPIC, count)
        port = port_of(server)
        found["memory"] = server.resident_mb()
        spread = b"".join(
            framed(ApiKey.PRODUCE, PRODUCE, produce_request(TOPIC, 1, SMALL, each)) for each in range(count)
        )
        requests = max(int(30_000 * scale), count)
        repeat(program, port, spread, connections=1, window=1, requests=count)  # every partition has been written to
        _send(found, "spread", program, server, spread, ACTIVE, requests)
        found["written"] = server.resident_mb()
        _fetch_all(found, program, server, count, scale)
        stopping = time.time()
    found["stop"] = time.time() - stopping
    # A second life after an orderly stop, a third one after a kill with records that no checkpoint knows of.
    with life(folder) as server:
        found["start"] = until_ready(server, TOPIC, count - 1)
        found["idle"] = server.resident_mb()
        repeat(program, port_of(server), spread, connections=1, window=1, requests=count)
        os.kill(server.pid, signal.SIGKILL)
    with life(folder) as server:
        found["start-killed"] = until_ready(server, TOPIC, count - 1)
    return {f"{count}-{name}": value for name, value in found.items()}


def _fetch_all(found: dict[str, float], program: Path, server: Server, count: int, scale: float) -> None:
    """Fetches over all partitions at their ends, where there is nothing new: with every partition named, and as the
    next request of a session that has them all."""
    port = port_of(server)
    requests = max(int(5_000 * scale) // max(count // 10, 1), 20)
    nothing = dict.fromkeys(range(count), 0)
    answer = cast(FetchResponse, ask(port, ApiKey.FETCH, FETCH, fetch_all_request(TOPIC, nothing)))
    ends = {part.partition_index: part.high_watermark for topic in answer.responses for part in topic.partitions}
    if ends.keys() != nothing.keys():
        raise RuntimeError(f"the broker answers for {len(ends)} of {count} partitions")
    named = fetch_all_request(TOPIC, ends)
    check_answer(port, ApiKey.FETCH, FETCH, named)
    frame = framed(ApiKey.FETCH, FETCH, named)
    before_s = server.cpu_seconds()
    found["fetch"] = repeat(program, port, frame, connections=1, window=1, requests=requests).p50_us / 1000
    found["fetch-cpu"] = (server.cpu_seconds() - before_s) * 1000 / requests
    first = fetch_all_request(TOPIC, ends, session=(0, 0))
    session = cast(FetchResponse, check_answer(port, ApiKey.FETCH, FETCH, first)).session_id
    if session == 0:
        raise RuntimeError("the broker gives no fetch session")
    next_ones = b"".join(
        framed(ApiKey.FETCH, FETCH, fetch_session_request(session, epoch)) for epoch in range(1, requests + 2)
    )
    before_s = server.cpu_seconds()
    answered = repeat(program, port, next_ones, connections=1, window=1, requests=requests)
    found["fetch-session"] = answered.p50_us / 1000
    found["fetch-session-cpu"] = (server.cpu_seconds() - before_s) * 1000 / requests
    check_answer(port, ApiKey.FETCH, FETCH, fetch_session_request(session, requests + 2))  # all of them were in order


def sizes(program: Path, start: AbstractContextManager[Server], of: tuple[int, ...], scale: float) -> Point:
    """Records of each size: in batches of 16 KB, or alone if they are larger; then read in fetches of 1 MB."""
    found: dict[str, float] = {}
    with start as server:
        create(server, "first", 1)
        port = port_of(server)
        for size in of:
            topic = f"size-{size}"
            create(server, topic, 1)
            records = max(1, BATCH // (size + OVERHEAD))
            frame = framed(ApiKey.PRODUCE, PRODUCE, produce_request(topic, records, size))
            requests = max(int(WRITTEN * scale) // len(frame), 50)
            repeat(program, port, frame, connections=2, window=5, requests=max(requests // 5, 20))
            before_s = server.cpu_seconds()
            answered = repeat(program, port, frame, connections=2, window=5, requests=requests)
            mb = requests * records * size / 1e6
            found[f"{size}-produce-records"] = requests * records / answered.seconds
            found[f"{size}-produce-mb"] = mb / answered.seconds
            found[f"{size}-produce-cpu"] = (server.cpu_seconds() - before_s) * 1000 / mb
            body = fetch_request(topic, FETCHED + 100_000)
            check_answer(port, ApiKey.FETCH, FETCH, body)
            requests = max(int(2_000 * scale), 20)
            before_s = server.cpu_seconds()
            frame = framed(ApiKey.FETCH, FETCH, body)
            answered = repeat(program, port, frame, connections=2, window=1, requests=requests)
            found[f"{size}-fetch-mb"] = answered.bytes / 1e6 / answered.seconds
            found[f"{size}-fetch-cpu"] = (server.cpu_seconds() - before_s) * 1000 / (answered.bytes / 1e6)
    return found
