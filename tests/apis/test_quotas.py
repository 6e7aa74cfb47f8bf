"""The broker tells a client that goes too fast how long to wait, and does not read from it until then."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.language.protocol.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ixion.language.protocol.messages.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ixion.language.protocol.messages.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ixion.language.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from ixion.testing.broker import Broker
from tests.apis.asking import Asking
from tests.apis.raw import Raw
from tests.apis.share_kit import Member, initialize, parts_of
from tests.apis.test_k01_fetch import id_of
from tests.network.harness import request_bytes

ANYBODY = (("user", None),)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("t")
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Asking]:
    """Another client id than those that are held back."""
    with Asking(broker.bootstrap) as asking:
        yield asking


def alter(admin: Asking, entity: tuple[tuple[str, str | None], ...], **quotas: float | None) -> ErrorCode:
    entry = EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        ops=tuple(OpData(key=key, value=float(value or 0), remove=value is None) for key, value in quotas.items()),
    )
    answer = admin.ask(AlterClientQuotasRequest(entries=(entry,), validate_only=False), AlterClientQuotasResponse)
    return ErrorCode(answer.entries[0].error_code)


def described(
    admin: Asking, *components: tuple[str, int, str | None], strict: bool = False
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    asked = tuple(ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components)
    answer = admin.ask(DescribeClientQuotasRequest(components=asked, strict=strict), DescribeClientQuotasResponse)
    assert answer.error_code == 0
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }


def produce(size: int = 50_000, acks: int = 1) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(None, bytes(size), timestamp=0)
    data = PartitionProduceData(index=0, records=bytes(builder.build()))
    return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=(TopicProduceData(name="t", partition_data=(data,)),))


def fetch(max_bytes: int = 10**8) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10**8)
    topics = (FetchTopic(topic="t", partitions=(part,)),)
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics)


def held(broker: Broker) -> int:
    async def count(real: Any) -> int:
        processors = real.parts.server._processors()
        return sum(1 for each in processors for connection in each.connections.values() if connection._held)

    return broker.call(count)


def let_go(broker: Broker) -> None:
    async def work(real: Any) -> None:
        for each in real.parts.server._processors():
            for connection in list(each.connections.values()):
                if connection._held:
                    connection.go_on()

    broker.call(work)


def test_a_producer_that_is_too_fast_must_wait(broker: Broker, admin: Asking) -> None:
    assert alter(admin, ANYBODY, producer_byte_rate=1_000) is ErrorCode.NONE
    with Asking(broker.bootstrap) as producer:
        answer = producer.ask(produce(), ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert 35_000 < answer.throttle_time_ms < 60_000  # 50,000 bytes, of which 10,000 were free
        assert held(broker) == 1
        let_go(broker)
        assert producer.ask(MetadataRequest(topics=()), MetadataResponse).throttle_time_ms == 0
        assert alter(admin, ANYBODY, producer_byte_rate=None) is ErrorCode.NONE
        assert producer.ask(produce(), ProduceResponse, 9).throttle_time_ms == 0
    assert held(broker) == 0


def test_a_producer_that_wants_no_answer_must_wait_as_well(broker: Broker, admin: Asking) -> None:
    alter(admin, ANYBODY, producer_byte_rate=1_000)
    with Raw(broker.bootstrap) as producer:
        producer.send(ApiKey.PRODUCE, 9, produce(acks=0))
        while held(broker) != 1:
            pass


def test_a_consumer_that_is_too_fast_must_wait(broker: Broker, admin: Asking) -> None:
    for _ in range(4):
        admin.ask(produce(), ProduceResponse, 9)
    alter(admin, (("client-id", "asking"),), consumer_byte_rate=1_000)
    with Asking(broker.bootstrap) as consumer:
        answer = consumer.ask(fetch(), FetchResponse, 12)
        (part,) = answer.responses[0].partitions
        assert part.records is not None
        assert 50_000 < len(part.records) < 60_000  # one batch: no fetch gives more than 10 s' worth
        assert answer.throttle_time_ms > 35_000
        assert held(broker) == 1


def test_a_member_of_a_share_group_that_is_too_fast_must_wait(broker: Broker, admin: Asking) -> None:
    for _ in range(4):
        admin.ask(produce(), ProduceResponse, 9)
    topic_id = id_of(broker, "t")
    initialize(broker, "sharers", topic_id)
    alter(admin, (("client-id", "asking"),), consumer_byte_rate=1_000)
    one = Member(broker, "sharers", topic_id)
    answer = one.fetch(max_records=5_000, max_bytes=10**8)
    assert 50_000 < len(joined([parts_of(answer)[0].records or b""])) < 60_000
    assert answer.throttle_time_ms > 35_000
    one.close()


def test_time_of_the_broker_is_limited(broker: Broker, admin: Asking) -> None:
    alter(admin, (("user", "ANONYMOUS"), ("client-id", "asking")), request_percentage=0.000001)
    with Asking(broker.bootstrap) as client:
        assert client.ask(MetadataRequest(topics=None), MetadataResponse).throttle_time_ms == 1_000
    assert held(broker) in (0, 1)


def test_time_on_worker_threads_counts(broker: Broker, admin: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turns of the loop stay far below 50 %, and each piece of work on a thread takes a minute."""
    minutes = itertools.count(0, 60_000_000_000)
    monkeypatch.setattr("ixion.broker.replica.fair_workers.thread_time_ns", lambda: next(minutes))
    broker.create_topic("recoded", 1, compression_type="gzip")
    alter(admin, (("user", "ANONYMOUS"), ("client-id", "asking")), request_percentage=50)
    request = produce(500_000)
    topic = request.topic_data[0].replace(name="recoded")
    with Asking(broker.bootstrap) as client:
        answer = client.ask(request.replace(topic_data=(topic,)), ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert answer.throttle_time_ms == 1_000


def test_quotas_are_described(broker: Broker, admin: Asking) -> None:
    both = (("user", "al/i.ce"), ("client-id", None))
    assert alter(admin, both, producer_byte_rate=1_000_000, request_percentage=12.5) is ErrorCode.NONE
    assert alter(admin, (("client-id", "app"),), consumer_byte_rate=2_000_000) is ErrorCode.NONE
    assert alter(admin, ANYBODY, consumer_byte_rate=3_000_000) is ErrorCode.NONE
    everything = described(admin)
    assert everything == {
        both: {"producer_byte_rate": 1_000_000, "request_percentage": 12.5},
        (("client-id", "app"),): {"consumer_byte_rate": 2_000_000},
        ANYBODY: {"consumer_byte_rate": 3_000_000},
    }
    assert set(described(admin, ("user", 2, None))) == {both, ANYBODY}
    assert set(described(admin, ("user", 2, None), strict=True)) == {ANYBODY}
    assert set(described(admin, ("user", 1, None))) == {ANYBODY}
    assert set(described(admin, ("user", 0, "al/i.ce"))) == {both}
    assert set(described(admin, ("client-id", 0, "app"))) == {(("client-id", "app"),)}
    assert described(admin, ("ip", 2, None)) == {}
    assert alter(admin, both, producer_byte_rate=None, request_percentage=None) is ErrorCode.NONE
    assert both not in described(admin)


@pytest.mark.parametrize(
    ("entity", "quota", "code"),
    [
        ((), {"producer_byte_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("user", ""),), {"producer_byte_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("", "u"),), {"producer_byte_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"), ("user", "v")), {"producer_byte_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("planet", "u"),), {"producer_byte_rate": 1}, ErrorCode.UNSUPPORTED_VERSION),
        ((("ip", "example.org"),), {"connection_creation_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("ip", "1.2.3.4"),), {"connection_creation_rate": 0.5}, ErrorCode.INVALID_REQUEST),
        ((("ip", "1.2.3.4"),), {"producer_byte_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("ip", "1.2.3.4"), ("user", "u")), {"connection_creation_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"),), {"connection_creation_rate": 1}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"),), {"controller_mutation_rate": 0}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"),), {"speed": 1}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"),), {"producer_byte_rate": 0.5}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"),), {"producer_byte_rate": -1}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"),), {"request_percentage": float("nan")}, ErrorCode.INVALID_REQUEST),
        ((("user", "u"),), {"request_percentage": float("inf")}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_quotas_that_make_no_sense(
    broker: Broker, admin: Asking, entity: tuple[tuple[str, str | None], ...], quota: dict[str, float], code: ErrorCode
) -> None:
    assert alter(admin, entity, **quota) is code
    assert described(admin) == {}


def create(names: Sequence[str], partitions: int = 10, validate_only: bool = False) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        for name in names
    )
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


def test_changes_over_the_quota_are_refused(broker: Broker, admin: Asking) -> None:
    over = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    alter(admin, (("client-id", "asking"),), controller_mutation_rate=0.001)
    with Asking(broker.bootstrap) as client:
        trial = client.ask(create(["x"], validate_only=True), CreateTopicsResponse, 6)
        assert (trial.topics[0].error_code, trial.throttle_time_ms) == (0, 0)  # a trial costs nothing
        answer = client.ask(create(["a", "t", "b"]), CreateTopicsResponse, 6)
        assert [topic.error_code for topic in answer.topics] == [0, ErrorCode.TOPIC_ALREADY_EXISTS, over]
        assert answer.throttle_time_ms > 9_000_000  # 10 partitions, less the burst, at one in 1,000 s
        assert held(broker) == 1
        let_go(broker)
        grown = CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="a", count=11, assignments=None),), timeout_ms=9_000, validate_only=False
        )
        refused = client.ask(grown, CreatePartitionsResponse, 3)
        assert (refused.results[0].error_code, refused.throttle_time_ms > 9_000_000) == (over, True)
        let_go(broker)
        gone = DeleteTopicsRequest(topic_names=("a",), timeout_ms=9_000)
        kept = client.ask(gone, DeleteTopicsResponse, 5)
        assert (kept.responses[0].error_code, kept.throttle_time_ms > 9_000_000) == (over, True)
        let_go(broker)
        older = client.ask(gone, DeleteTopicsResponse, 4)  # a client that does not know the code must wait
        assert (older.responses[0].error_code, older.throttle_time_ms > 19_000_000) == (0, True)
        let_go(broker)
        made = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="new"),)), MetadataResponse, 12)
        assert (made.topics[0].error_code, made.throttle_time_ms > 20_000_000) == (0, True)
    there = admin.ask(MetadataRequest(topics=None), MetadataResponse, 12)
    assert {topic.name for topic in there.topics} == {"t", "new"}


def test_an_address_that_connects_too_fast_is_turned_away(broker: Broker, admin: Asking) -> None:
    def answered() -> bool:
        """Whether a new connection gets an answer; otherwise the broker closes it, without having read anything."""
        host, _, port = broker.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(request_bytes(7))
            try:
                return len(client.recv(8)) > 0
            except ConnectionError:
                return False

    assert answered()
    assert alter(admin, (("ip", "127.0.0.1"),), connection_creation_rate=1) is ErrorCode.NONE
    outcomes = [answered() for _ in range(12)]
    assert outcomes[:8] == [True] * 8
    while outcomes[-1]:
        assert len(outcomes) < 500
        outcomes.append(answered())
    assert alter(admin, (("ip", "127.0.0.1"),), connection_creation_rate=None) is ErrorCode.NONE
    assert all(answered() for _ in range(20))


def test_quotas_survive_a_restart(tmp_path: Path) -> None:
    both = (("user", "alice"), ("client-id", "app"))
    with Broker(data=tmp_path) as broker, Asking(broker.bootstrap) as admin:
        for entity in (both, ANYBODY, (("client-id", None),)):
            assert alter(admin, entity, producer_byte_rate=5_000_000, controller_mutation_rate=99.5) is ErrorCode.NONE
        for address in (None, "10.0.0.1", "fe80::1"):
            assert alter(admin, (("ip", address),), connection_creation_rate=1_000) is ErrorCode.NONE
        before = described(admin)
    with Broker(data=tmp_path) as broker, Asking(broker.bootstrap) as admin:
        assert described(admin) == before
        assert len(before) == 6
