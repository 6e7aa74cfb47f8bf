"""What checking costs: the processor time that a broker spends on one produce, with and without an authorizer.

One client sends a produce of one small record after the other and waits for each answer. The authorizer has 1,000
rules, every second of them about a prefix, of which one allows the client to write. With quotas, there is one on
everything, far above what the client does. The time is that of the broker's own thread, so a busy machine disturbs it
little.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from ixion.broker.quota.limits import DEFAULT, KINDS, Entity
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.acl_binding import Entry, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.language.protocol.envelope import frame_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.records.builder import BatchBuilder
from ixion.testing.broker import Broker

PLAIN, CHECKED, LIMITED = "no authorizer", "1,000 rules", "quotas"
PRODUCES = 2_000
AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}


def frame() -> bytes:
    builder = BatchBuilder()
    builder.append(b"key", bytes(100), timestamp=0)
    data = PartitionProduceData(index=0, records=bytes(builder.build()))
    request = ProduceRequest(acks=1, timeout_ms=5_000, topic_data=(TopicProduceData(name="t", partition_data=(data,)),))
    header = RequestHeader(api_key=0, api_version=9, correlation_id=1, client_id="bench")
    return b"".join(bytes(part) for part in frame_request(header, request))


async def add_rules(real: RealBroker) -> None:
    assert real.parts.authorizer is not None
    rules = real.parts.authorizer.rules
    for number in range(999):
        pattern = PatternKind.PREFIXED if number % 2 else PatternKind.LITERAL
        entry = Entry(f"User:u{number}", "*", Operation.READ, Permission.ALLOW)
        rules.put(ResourcePattern(ResourceKind.TOPIC, f"x{number}", pattern), [entry])
    allowed = Entry("User:ANONYMOUS", "*", Operation.WRITE, Permission.ALLOW)
    rules.put(ResourcePattern(ResourceKind.TOPIC, "t"), [allowed])


async def add_quotas(real: RealBroker) -> None:
    real.parts.quotas.put(Entity(DEFAULT), dict.fromkeys(KINDS, 1e12))


async def spent_ns(_real: RealBroker) -> int:
    return time.thread_time_ns()


@contextmanager
def broker(what: str) -> Iterator[Broker]:
    with Broker(AUTHORIZER if what == CHECKED else {}) as running:
        if what == CHECKED:
            running.call(add_rules)
            running.call(create)
        else:
            running.create_topic("t")
        if what == LIMITED:
            running.call(add_quotas)
        yield running


async def create(real: RealBroker) -> None:
    from ixion.broker.controller.planning import NewTopic

    await real.parts.controller.topics.create([NewTopic(name="t", partitions=1)])


def produce(running: Broker, count: int) -> Mapping[str, float]:
    host, _, port = running.bootstrap.rpartition(":")
    sent = frame()
    with socket.create_connection((host, int(port)), timeout=20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        before = running.call(spent_ns)
        for _ in range(count):
            client.sendall(sent)
            (size,) = struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))
            client.recv(size, socket.MSG_WAITALL)
        return {"processor": (running.call(spent_ns) - before) / count / 1_000}


def contenders(session: Session) -> Mapping[str, Contender]:
    count = 50 if session.quick else PRODUCES
    running = {what: session.enter(broker(what)) for what in (PLAIN, CHECKED, LIMITED)}
    for one in running.values():
        produce(one, count // 5)  # what is imported and made for the first of them
    return {what: partial(produce, one, count) for what, one in running.items()}


BENCHMARK = Benchmark(
    name="rights",
    title="What checking rights and quotas costs",
    rows=(Row(key="processor", label="processor time of a small produce", unit="µs"),),
    goals=(
        Goal(label="with 1,000 rules", value=("processor", CHECKED), base=("processor", PLAIN), at_most=1.05),
        Goal(label="with quotas", value=("processor", LIMITED), base=("processor", PLAIN), at_most=1.10),
    ),
    baseline=PLAIN,
    contenders=contenders,
)
