"""Every record once and in order, whatever the brokers do."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Event

import pytest

from ixion.clients.core.producer.batch import Delivery
from ixion.clients.core.producer.partitioner import keyed_partition
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import TopicPartition
from ixion.clients.producer import Producer
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batch import BatchView
from ixion.language.records.compression import CODECS, Codec
from tests.clients.fake import FakeCluster, Fault, Reaction

SMALL = 120  # bytes of a batch: about three records


def refuse(code: ErrorCode) -> Callable[[Struct], Struct]:
    """An answer that refuses all of a Produce request, which is not carried out."""

    def react(request: Struct) -> Struct:
        assert isinstance(request, ProduceRequest)
        return ProduceResponse(
            responses=tuple(
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
                        for part in topic.partition_data
                    ),
                )
                for topic in request.topic_data
            )
        )

    return react


def numbered(count: int, start: int = 0) -> list[bytes | None]:
    return [b"value-%04d" % number for number in range(start, start + count)]


def stored(fakes: FakeCluster, partition: int = 0) -> list[bytes | None]:
    return fakes.logs[TopicPartition("orders", partition)].values()


def send_all(producer: Producer, values: list[bytes | None], partition: int | None = 0) -> list[Delivery]:
    heard: list[Delivery] = []
    for value in values:
        producer.send("orders", value, partition=partition, on_delivery=heard.append)
    return heard


def test_records_arrive_and_their_offsets_are_returned() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            heard = send_all(producer, numbered(50))
        assert stored(fakes) == numbered(50)
        assert [delivery.offset for delivery in heard] == list(range(50))
        assert {delivery.error for delivery in heard} == {None}
        batches = [BatchView(batch) for batch in fakes.logs[TopicPartition("orders", 0)].batches]
        assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]
        assert {batch.producer_id for batch in batches} == {7000}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [3, 12, 13])
def test_every_codec_and_topics_by_name_and_by_id(codec: Codec, version: int) -> None:
    with FakeCluster(newest={ApiKey.PRODUCE: version}) as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, compression=codec.name.lower()) as producer:
            producer.send("orders", b"x" * 1000, key=b"k", headers=[("h", None)], timestamp_ms=7)
        (batch,) = fakes.logs[TopicPartition("orders", 0)].batches
        (record,) = BatchView(batch)
        assert BatchView(batch).codec is codec
        assert (record.key, record.value, record.headers, record.timestamp) == (b"k", b"x" * 1000, [("h", None)], 7)


@pytest.mark.parametrize("acks", [1, 0])
def test_fewer_acknowledgements_mean_no_sequences(acks: int) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, acks=acks, batch_size=SMALL) as producer:
            heard = send_all(producer, numbered(20))
            producer.flush()
            # The answer to a question behind them: all of them have been taken in.
            producer.send("orders", b"last")
        assert [delivery.offset for delivery in heard] == (list(range(20)) if acks else [-1] * 20)
        assert fakes.count(ApiKey.INIT_PRODUCER_ID) == 0
        assert all(BatchView(batch).base_sequence == -1 for batch in fakes.logs[TopicPartition("orders", 0)].batches)


def test_keys_decide_the_partition_and_the_rest_is_spread() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1, 1, 1])
        with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            for number in range(30):
                producer.send("orders", b"keyed", key=b"key-%d" % number)
        for number in range(3):
            expected = sum(keyed_partition(b"key-%d" % key, 3) == number for key in range(30))
            assert len(stored(fakes, number)) == expected
        with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            send_all(producer, numbered(100), partition=None)
        loads = [stored(fakes, number).count(b"keyed") < len(stored(fakes, number)) for number in range(3)]
        assert all(loads)


FAULTS: list[Reaction] = [
    Fault.DROP,
    Fault.DROP_AFTER,
    Fault.HALF,
    Fault.WRONG_ID,
    refuse(ErrorCode.NOT_ENOUGH_REPLICAS),
    refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),
]


@pytest.mark.parametrize("seed", [*range(8), 179, 211])
def test_nothing_is_lost_doubled_or_overtaken(seed: int) -> None:
    choose = random.Random(seed)
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[1, 2, 1])
        for node in (1, 2):
            for _ in range(4):
                calm = choose.randrange(4)
                fakes.at(node, ApiKey.PRODUCE, *[calmly(fakes, node)] * calm, choose.choice(FAULTS))
        with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            heard = [send_all(producer, numbered(40, 1000 * number), number) for number in range(3)]
        for number in range(3):
            assert stored(fakes, number) == numbered(40, 1000 * number)
            assert [delivery.error for delivery in heard[number]] == [None] * 40


def when(held: Event, react: Callable[[Struct], Struct]) -> Callable[[Struct], Struct]:
    """Answer only then."""

    def wait(request: Struct) -> Struct:
        assert held.wait(20)
        return react(request)

    return wait


def calmly(fakes: FakeCluster, node: int) -> Callable[[Struct], Struct]:
    """Nothing special: to put distance between two faults."""
    return fakes.nodes[node]._answer


def test_without_sequences_a_retry_keeps_the_order_too() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        held = Event()
        fakes.at(1, ApiKey.PRODUCE, when(held, refuse(ErrorCode.NOT_ENOUGH_REPLICAS)))
        with Producer(fakes.bootstrap, acks=1, batch_size=SMALL) as producer:
            send_all(producer, numbered(30))
            held.set()
        assert stored(fakes) == numbered(30)


def test_several_requests_are_under_way_once_the_broker_knows_the_producer() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            send_all(producer, numbered(1))
            producer.flush()
            held = Event()
            fakes.at(1, ApiKey.PRODUCE, when(held, calmly(fakes, 1)))
            send_all(producer, numbered(50, 1))
            producer.poll()  # what is full goes out now, and not a moment later with the next ones
            (box,) = producer._machine.active
            assert len(box.flying) == 5
            held.set()
        assert stored(fakes) == numbered(51)


def test_a_leader_that_moves_is_followed() -> None:
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            send_all(producer, numbered(20))
            producer.flush()
            fakes.leaders["orders"] = [2]
            send_all(producer, numbered(20, 20))
        assert stored(fakes) == numbered(40)
        assert {node for node, api, _ in fakes.seen if api == ApiKey.PRODUCE} == {1, 2}


@pytest.mark.parametrize("calm", [0, 1, 3])
def test_a_batch_that_is_refused_for_good_leaves_no_gap(calm: int) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, *[calmly(fakes, 1)] * calm, refuse(ErrorCode.INVALID_RECORD))
        producer = Producer(fakes.bootstrap, batch_size=SMALL)
        heard = send_all(producer, numbered(40))
        with pytest.raises(KafkaError, match=f"orders-0: {ErrorCode.INVALID_RECORD.explanation}"):
            producer.flush()
        failed = [number for number, delivery in enumerate(heard) if delivery.error is not None]
        assert failed
        assert stored(fakes) == [value for number, value in enumerate(numbered(40)) if number not in failed]
        producer.send("orders", b"after")
        producer.close()
        assert stored(fakes)[-1] == b"after"


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_numbers_that_the_broker_does_not_share_start_again_in_a_new_epoch(code: ErrorCode) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, refuse(code))
        producer = Producer(fakes.bootstrap, batch_size=SMALL, linger_ms=10_000)
        heard = send_all(producer, numbered(2))
        with pytest.raises(KafkaError, match=code.name):
            producer.flush()
        producer.send("orders", b"more")
        producer.close()
        assert [delivery.offset for delivery in heard] == [-1, -1]
        assert stored(fakes) == [b"more"]
        (batch,) = map(BatchView, fakes.logs[TopicPartition("orders", 0)].batches)
        assert (batch.producer_epoch, batch.base_sequence) == (1, 0)
        assert fakes.count(ApiKey.INIT_PRODUCER_ID) == 1


def test_what_cannot_be_delivered_in_time_fails() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, *[refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 100)
        producer = Producer(fakes.bootstrap, request_timeout_ms=90, delivery_timeout_ms=100)
        heard = send_all(producer, numbered(2))
        with pytest.raises(KafkaError, match=r"orders-0: not delivered within 0\.1 s"):
            producer.flush()
        assert [delivery.offset for delivery in heard] == [-1, -1]


def test_a_broker_that_does_not_answer_is_left_and_asked_again() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, Fault.SILENCE)
        with Producer(fakes.bootstrap, request_timeout_ms=100) as producer:
            send_all(producer, numbered(3))
        assert stored(fakes) == numbered(3)


def test_polling_sends_a_lingering_batch() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(fakes.bootstrap, linger_ms=1)
        heard = send_all(producer, numbered(1))
        while not heard:
            producer.poll(0.01)
        assert heard[0].offset == 0
        producer.close()


def test_a_full_buffer_is_waited_for() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, batch_size=SMALL, buffer_memory=500) as producer:
            for value in numbered(200):
                producer.send("orders", value, partition=0)
                assert producer.buffered_bytes <= 500
        assert stored(fakes) == numbered(200)


def test_a_topic_or_partition_that_is_not_there() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(fakes.bootstrap, allow_auto_create_topics=False)
        producer.partitions_for("orders")
        with pytest.raises(UnknownTopicError, match="did you mean 'orders'"):
            producer.send("order", b"x")
        with pytest.raises(KafkaError, match="topic 'orders' has partitions 0 to 0, not 3"):
            producer.send("orders", b"x", partition=3)
        producer.close()
