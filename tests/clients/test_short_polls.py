"""A poll waits as long as its caller says, whatever step of the way the broker stalls at.

All other times are an hour here: a poll that waited for one of them would run into the test's own limit.
"""

from __future__ import annotations

import pytest

from ixion.clients.address import Address
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.dial import Dial, Place
from ixion.clients.metadata import TopicPartition
from ixion.clients.producer import Producer
from ixion.clients.reader import Reader
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from tests.clients.fake import FakeCluster, Fault
from tests.clients.test_producer import refuse

HOUR_S = 3600.0
ORDERS = TopicPartition("orders", 0)

pytestmark = pytest.mark.timeout(60)


def patient(fakes: FakeCluster, acks: int = -1, batch_size: int = 16_384) -> Producer:
    return Producer(
        fakes.bootstrap,
        acks=acks,
        batch_size=batch_size,
        linger_ms=0,
        max_request_size=10_000_000,
        buffer_memory=100_000_000,
        request_timeout_ms=HOUR_S * 1000,
        delivery_timeout_ms=HOUR_S * 1000,
    )


def hang_up(producer: Producer) -> None:
    with pytest.raises(KafkaError, match="not settled within 0 s"):
        producer.close(timeout_s=0)


def poll_until_asked(fakes: FakeCluster, client: Producer | Reader, api: ApiKey) -> None:
    """Poll until the broker has seen the request that it will not answer, and some more."""
    while not fakes.count(api):
        client.poll(0.001)
    for _ in range(5):
        client.poll(0.001)


@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.PRODUCE])
def test_a_leader_that_never_answers(api: ApiKey) -> None:
    heard: list[Delivery] = []
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[2])
        fakes.at(2, api, Fault.SILENCE)
        producer = patient(fakes)
        producer.send("orders", b"x", on_delivery=heard.append)
        poll_until_asked(fakes, producer, api)
        hang_up(producer)
        assert len(heard) == 1


def test_metadata_that_never_comes() -> None:
    """The leader has moved, and no broker says where to."""
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = patient(fakes)
        producer.send("orders", b"x")
        producer.flush()
        asked = fakes.count(ApiKey.METADATA)
        fakes.at(1, ApiKey.PRODUCE, *[refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 1000)
        fakes.at(1, ApiKey.METADATA, Fault.SILENCE)
        producer.send("orders", b"y")
        while fakes.count(ApiKey.METADATA) == asked:
            producer.poll(0.001)
        for _ in range(5):
            producer.poll(0.001)
        hang_up(producer)


@pytest.mark.parametrize("acks", [1, 0])
def test_a_broker_that_reads_no_more(acks: int) -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, Fault.DEAF)
        producer = patient(fakes, acks=acks, batch_size=4_000_000)
        for _ in range(10):
            producer.send("orders", bytes(3_000_000), on_delivery=heard.append)
        poll_until_asked(fakes, producer, ApiKey.PRODUCE)
        hang_up(producer)
        assert len(heard) == 10
        assert any(delivery.error is not None for delivery in heard)


@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.FETCH, ApiKey.LIST_OFFSETS])
def test_a_reader_of_a_broker_that_never_answers(api: ApiKey) -> None:
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[2])
        builder = BatchBuilder()
        builder.append(None, b"x")
        fakes.logs[ORDERS].append(builder.build())
        fakes.at(2, api, Fault.SILENCE)
        with Reader(
            fakes.bootstrap, {ORDERS: 5 if api == ApiKey.LIST_OFFSETS else 0}, request_timeout_s=HOUR_S
        ) as reader:
            poll_until_asked(fakes, reader, api)


def test_a_stalled_leader_is_given_up_after_the_request_timeout() -> None:
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[2])
        fakes.at(2, ApiKey.API_VERSIONS, Fault.SILENCE)
        heard: list[Delivery] = []
        with Producer(fakes.bootstrap, request_timeout_ms=100) as producer:
            producer.send("orders", b"x", on_delivery=heard.append)
        assert [delivery.offset for delivery in heard] == [0]


@pytest.mark.parametrize("gone", ["leader", "all"])
def test_many_partitions_do_not_each_try_a_broker_that_is_gone(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dials: list[Address] = []
    real = Dial.__init__

    def dial(self: Dial, address: Address, places: list[Place] | None = None) -> None:
        dials.append(address)
        real(self, address, places)

    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[2] * 200)
        producer = Producer(
            fakes.bootstrap,
            linger_ms=HOUR_S * 1000,
            delivery_timeout_ms=2 * HOUR_S * 1000,
            reconnect_backoff_ms=HOUR_S * 1000,
            reconnect_backoff_max_ms=HOUR_S * 1000,
        )
        for number in range(200):
            producer.send("orders", b"x", partition=number)
        fakes.nodes[2].stop()
        if gone == "all":
            fakes.nodes[1].stop()
        monkeypatch.setattr(Dial, "__init__", dial)
        with pytest.raises(KafkaError, match="records for 200 partitions are not settled"):
            producer.flush(timeout_s=0.2)
        assert 1 <= len(dials) <= 3
        with pytest.raises(KafkaError):
            producer.close(timeout_s=0)
