"""A broker may send anything: random bytes, cut frames, wrong ids, wrong versions, nonsense that decodes.

Whatever comes, a record that `send` accepted gets exactly one callback, and no exception but a KafkaError leaves the
client.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from ixion.clients import Admin
from ixion.clients.admin.offsets import EARLIEST as FIRST_OFFSET
from ixion.clients.admin.topics import NewTopic
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.metadata import TopicPartition
from ixion.clients.producer import Producer
from ixion.clients.reader import Reader
from ixion.clients.settings import ProducerOptions
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.codec.sink import Deferred
from ixion.language.protocol.messages.k00_produce import ProduceResponse
from ixion.language.protocol.messages.k01_fetch import FetchRequest, FetchResponse
from ixion.language.protocol.messages.k03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ixion.language.protocol.messages.k18_api_versions import ApiVersion, ApiVersionsResponse
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from tests.clients.fake import SPOKEN, FakeCluster, Fault, Mangled, Reaction

ORDERS = TopicPartition("orders", 0)
SMALL = 120  # bytes of a batch: about three records


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def manglers(choose: random.Random) -> list[Reaction]:
    """One of each way to spoil an answer."""

    def flip(data: bytes) -> bytes:
        spoilt = bytearray(data)
        for _ in range(choose.randrange(1, 4)):
            spoilt[choose.randrange(8, len(spoilt))] = choose.randrange(256)
        return bytes(spoilt)

    def shorten(data: bytes) -> bytes:
        return framed(data[4 : choose.randrange(8, len(data))])

    return [
        Mangled(lambda data: choose.randbytes(len(data)), hangs_up=True),  # no frame at all
        Mangled(lambda data: framed(choose.randbytes(len(data) - 4)), hangs_up=True),  # of another request
        Mangled(lambda data: framed(data[4:8] + choose.randbytes(len(data) - 8))),  # the right id
        Mangled(flip),
        Mangled(shorten),
        Mangled(lambda data: data[: choose.randrange(len(data))], hangs_up=True),
        Mangled(lambda data: framed(data[4:] + choose.randbytes(5))),
        Mangled(lambda data: data + data),  # an answer that nobody asked for
        Mangled(lambda data: framed(b"")),
        Fault.GARBAGE,
        Fault.WRONG_ID,
        Fault.DROP_AFTER,
    ]


@pytest.mark.parametrize("acks", [-1, 1])
def test_every_record_ends_in_one_callback_whatever_is_answered(acks: int) -> None:
    """Side by side, because each of them mostly waits for timeouts."""
    with ThreadPoolExecutor(12) as threads:
        wrong = [
            seed for seed, is_right in enumerate(threads.map(partial(is_told_once, acks), range(12))) if not is_right
        ]
    assert wrong == []


def is_told_once(acks: int, seed: int) -> bool:
    choose = random.Random(seed)
    told: Counter[int] = Counter()
    accepted: list[int] = []
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[1, 2, 1])
        for node in (1, 2):
            for api in SPOKEN:
                fakes.at(node, api, *(choose.choice([*manglers(choose), fakes.nodes[node]._answer]) for _ in range(6)))
        settings: ProducerOptions = {
            "acks": acks,
            "batch_size": SMALL,
            "request_timeout_ms": 200,
            "delivery_timeout_ms": 500,
            "max_block_ms": 50,
        }
        producer = Producer(fakes.bootstrap, **settings)

        def count(number: int) -> Callable[[Delivery], None]:
            return lambda delivery: told.update([number])

        for number in range(60):
            try:
                producer.send("orders", b"value-%04d" % number, partition=number % 3, on_delivery=count(number))
            except KafkaError:
                continue  # not accepted
            accepted.append(number)
        try:
            producer.close()
        except KafkaError:
            pass
        return told == Counter(accepted)


def test_an_answer_that_cannot_be_read_gives_its_batch_back() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, Fault.GARBAGE)
        heard: list[Delivery] = []
        with Producer(fakes.bootstrap) as producer:
            producer.send("orders", b"first", on_delivery=heard.append)
            producer.flush()
            producer.send("orders", b"second", on_delivery=heard.append)
        assert [delivery.offset for delivery in heard] == [0, 1]
        assert fakes.logs[ORDERS].values() == [b"first", b"second"]


def test_requests_behind_an_unreadable_answer_are_sent_again() -> None:
    with FakeCluster(nodes=1) as fakes:
        fakes.add_topic("orders", leaders=[1])
        heard: list[Delivery] = []
        with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            producer.send("orders", b"known", on_delivery=heard.append)
            producer.flush()
            fakes.at(1, ApiKey.PRODUCE, Fault.GARBAGE, Fault.GARBAGE)
            for number in range(30):
                producer.send("orders", b"value-%04d" % number, on_delivery=heard.append)
        assert [delivery.offset for delivery in heard] == list(range(31))
        assert [delivery.error for delivery in heard] == [None] * 31


def metadata(**changes: object) -> Callable[[Struct], Struct]:
    """Metadata about `orders`, with something absurd in it."""
    host, port = str(changes.get("host", "127.0.0.1")), int(str(changes.get("port", 1)))
    numbers = changes.get("partitions", (0,))
    assert isinstance(numbers, tuple)

    def react(_: Struct) -> Struct:
        partitions = tuple(
            MetadataResponsePartition(error_code=0, partition_index=number, leader_id=1, replica_nodes=(), isr_nodes=())
            for number in numbers
        )
        return MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host=host, port=port),),
            controller_id=1,
            topics=(MetadataResponseTopic(error_code=0, name="orders", topic_id=b"i" * 16, partitions=partitions),),
        )

    return react


@pytest.mark.parametrize(
    "absurd",
    [
        {"port": 70_000},
        {"port": -1},
        {"port": 0},
        {"host": "a\0b"},
        {"host": "x" * 70 + ".example"},
        {"host": ""},
        {"partitions": ()},
        {"partitions": (5,)},
        {"partitions": (0, 0)},
        {"partitions": (0, 2**31 - 1)},
        {"partitions": (-1, 0)},
    ],
)
def test_metadata_that_cannot_be_true(absurd: dict[str, object]) -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.METADATA, *[metadata(**absurd)] * 200)
        producer = Producer(fakes.bootstrap, acks=1, request_timeout_ms=100, delivery_timeout_ms=200, max_block_ms=300)
        accepted = 0
        try:
            producer.send("orders", b"x", on_delivery=heard.append)
            accepted += 1
            producer.send("orders", b"x", key=b"k", on_delivery=heard.append)
            accepted += 1
        except KafkaError:
            pass
        try:
            producer.close()
        except KafkaError:
            pass
        assert len(heard) == accepted


@pytest.mark.parametrize(
    "spoken",
    [
        (),
        (ApiVersion(api_key=0, min_version=100, max_version=200),),
        (ApiVersion(api_key=0, min_version=-5, max_version=-1),),
        (ApiVersion(api_key=0, min_version=9, max_version=3),),
    ],
)
def test_a_leader_that_cannot_take_a_produce(spoken: tuple[ApiVersion, ...]) -> None:
    """The first connection of the cluster speaks all; the one that the batches would go over does not."""
    heard: list[Delivery] = []

    def versions(_: Struct) -> Struct:
        return ApiVersionsResponse(error_code=0, api_keys=spoken)

    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[2])
        fakes.at(2, ApiKey.API_VERSIONS, versions)
        producer = Producer(fakes.bootstrap)
        producer.send("orders", b"x", on_delivery=heard.append)
        with pytest.raises(KafkaError, match="Produce"):
            producer.close()
    assert [delivery.offset for delivery in heard] == [-1]


def test_versions_that_are_none() -> None:
    with (
        FakeCluster(newest={ApiKey.API_VERSIONS: -7}) as fakes,
        Admin(fakes.bootstrap, default_api_timeout_ms=200) as admin,
        pytest.raises(KafkaError, match="does not say which versions it speaks"),
    ):
        admin.list_topics()


def test_a_producer_id_that_is_none() -> None:
    def nobody(_: Struct) -> Struct:
        return InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=-1, producer_epoch=-1)

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.INIT_PRODUCER_ID, nobody)
        heard: list[Delivery] = []
        with Producer(fakes.bootstrap) as producer:
            producer.send("orders", b"x", on_delivery=heard.append)
        assert [delivery.offset for delivery in heard] == [0]


def test_an_answer_without_the_partition_that_was_asked_for() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, lambda _: ProduceResponse(responses=()))
        heard: list[Delivery] = []
        producer = Producer(fakes.bootstrap)
        producer.send("orders", b"x", on_delivery=heard.append)
        with pytest.raises(KafkaError):
            producer.close()
        assert len(heard) == 1


def filled(fakes: FakeCluster, count: int) -> None:
    fakes.add_topic("orders", leaders=[1])
    for number in range(count):
        builder = BatchBuilder()
        builder.append(None, b"%d" % number)
        fakes.logs[ORDERS].append(builder.build())


@pytest.mark.parametrize("seed", range(8))
def test_a_reader_reads_on_behind_garbage(seed: int) -> None:
    choose = random.Random(seed)
    with FakeCluster() as fakes:
        filled(fakes, 10)
        for api in (ApiKey.FETCH, ApiKey.METADATA):
            # Bits that are turned in a record are another question: they decode. See the next test.
            spoilt = [*manglers(choose)[:3], *manglers(choose)[4:]]
            fakes.at(1, api, fakes.nodes[1]._answer, *choose.sample(spoilt, 3))
        found: list[bytes | None] = []
        with Reader(fakes.bootstrap, {ORDERS: 0}, max_wait_ms=10, request_timeout_s=0.1) as reader:
            while len(found) < 10:
                for fetched in reader.poll(5):
                    found += [record.value for record in fetched.records()]
        assert found == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize("seed", range(8))
def test_records_that_are_garbage_do_not_crash_a_reader(seed: int) -> None:
    choose = random.Random(seed)

    def spoil(fakes: FakeCluster, request: Struct) -> Struct:
        assert isinstance(request, FetchRequest)
        answer = fakes.nodes[1]._fetch(request)
        (topic,) = answer.responses
        (part,) = topic.partitions
        assert not isinstance(part.records, Deferred)
        cut = bytearray(part.records or choose.randbytes(90))
        cut[choose.randrange(len(cut))] ^= 1 << choose.randrange(8)
        spoilt = part.replace(records=bytes(cut[: choose.randrange(1, len(cut) + 1)]))
        stranger = part.replace(partition_index=77)
        return FetchResponse(throttle_time_ms=0, responses=(topic.replace(partitions=(spoilt, stranger)),))

    with FakeCluster() as fakes:
        filled(fakes, 5)
        fakes.at(1, ApiKey.FETCH, *[lambda request: spoil(fakes, request)] * 40)
        with Reader(fakes.bootstrap, {ORDERS: 0}) as reader:
            for _ in range(30):
                try:
                    for fetched in reader.poll(0.01):
                        list(fetched.records())
                except KafkaError:
                    pass


@pytest.mark.parametrize("seed", range(6))
def test_administration_fails_as_a_kafka_error(seed: int) -> None:
    choose = random.Random(seed)
    with FakeCluster() as fakes:
        filled(fakes, 1)
        for api in SPOKEN:
            fakes.at(1, api, *(choose.choice([*manglers(choose), fakes.nodes[1]._answer]) for _ in range(30)))
        with Admin(fakes.bootstrap, default_api_timeout_ms=200) as admin:
            asks: list[Callable[[], object]] = [
                lambda: admin.list_topics(),
                lambda: admin.list_offsets({ORDERS: FIRST_OFFSET}),
                lambda: admin.list_groups(),
                lambda: admin.describe_groups(["g"]),
                lambda: admin.create_topics([NewTopic("other", 1)]),
                lambda: admin.delete_topics(["other"]),
            ]
            for ask in asks:
                with suppress(KafkaError):
                    ask()
