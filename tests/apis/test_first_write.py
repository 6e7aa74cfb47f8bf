"""Transactional batches in Produce: older clients must have added the partition, newer ones add it by writing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ixion.broker.apis import first_write
from ixion.broker.coordinators.txn.markers import Marker, Written
from ixion.broker.coordinators.txn.verification import Verified
from ixion.broker.log.producer_state import ProducerState
from ixion.broker.replica.append import Entry
from ixion.broker.replica.results import AppendResult
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from ixion.timer.lane import Lane
from ixion.timer.turns import Turn
from tests.apis.raw import Raw
from tests.apis.reading import read_all
from tests.apis.test_k61_describe_producers import describe
from tests.apis.test_k65_describe_transactions import describe as describe_transactions
from tests.apis.txn_kit import add, batch, end, init, produce, produce_request
from tests.timer.test_lane import Loop


@pytest.mark.parametrize(
    ("version", "code"), [(3, "INVALID_TXN_STATE"), (10, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE")]
)
def test_a_partition_that_was_not_announced_is_not_written_to(raw: Raw, version: int, code: str) -> None:
    name = f"unannounced {version}"
    producer_id, epoch = init(raw, name)
    assert produce(raw, name, batch(producer_id, epoch), version=version) == code
    assert producer_id not in describe(raw, "t", 0)[1]
    add(raw, name, producer_id, epoch, 0)
    assert produce(raw, name, batch(producer_id, epoch), version=version) == "NONE"
    assert produce(raw, name, batch(producer_id, epoch, 1), version=version) == "NONE"
    assert end(raw, name, producer_id, epoch, True, 4)[0] == "NONE"
    assert produce(raw, name, batch(producer_id, epoch, 2), version=version) == code, "and not after its end"


def test_a_newer_client_adds_by_writing(raw: Raw) -> None:
    producer_id, epoch = init(raw, "adds")
    assert produce(raw, "adds", batch(producer_id, epoch), number=1) == "NONE"
    (state,) = describe_transactions(raw, "adds")
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("t", (1,))]
    assert end(raw, "adds", producer_id, epoch, False, 5)[0] == "NONE"
    assert produce(raw, "adds", batch(producer_id, epoch, 1), number=1) == "INVALID_PRODUCER_EPOCH"
    assert produce(raw, "adds", batch(producer_id, epoch + 1), number=1) == "NONE"


def test_the_second_record_does_not_overtake_the_first(raw: Raw) -> None:
    producer_id, epoch = init(raw, "overtakes")
    assert produce(raw, "overtakes", batch(producer_id, epoch, 1)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert describe_transactions(raw, "overtakes")[0].transaction_state == "Empty"
    assert produce(raw, "overtakes", batch(producer_id, epoch, 0)) == "NONE"
    assert produce(raw, "overtakes", batch(producer_id, epoch, 1)) == "NONE"


@pytest.mark.parametrize(("version", "refusal"), [(10, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE")])
def test_a_record_of_an_older_client_does_not_overtake_one_that_was_refused(
    raw: Raw, version: int, refusal: str
) -> None:
    name = f"overtakes {version}"
    producer_id, epoch = init(raw, name)

    def send(sequence: int) -> str:
        return produce(raw, name, batch(producer_id, epoch, sequence), number=2, version=version)

    assert [send(4), send(3)] == [refusal, refusal]
    add(raw, name, producer_id, epoch, 2)
    assert send(4) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert producer_id not in describe(raw, "t", 2)[1]
    assert [send(3), send(4), send(5)] == ["NONE", "NONE", "NONE"], "its state may have been forgotten before 3"
    assert end(raw, name, producer_id, epoch, True, 4)[0] == "NONE"
    assert send(6) == refusal
    add(raw, name, producer_id, epoch, 2)
    assert [send(7), send(6)] == ["OUT_OF_ORDER_SEQUENCE_NUMBER", "NONE"], "what is known is held to its sequence"
    assert end(raw, name, producer_id, epoch, False, 4)[0] == "NONE"


def test_a_new_epoch_of_an_older_client_starts_its_numbers_again(raw: Raw) -> None:
    producer_id, epoch = init(raw, "begins")
    assert produce(raw, "begins", batch(producer_id, epoch, 3), version=11) == "TRANSACTION_ABORTABLE"
    assert init(raw, "begins") == (producer_id, epoch + 1)
    add(raw, "begins", producer_id, epoch + 1, 0)
    assert produce(raw, "begins", batch(producer_id, epoch + 1, 5), version=11) == "NONE"
    assert end(raw, "begins", producer_id, epoch + 1, True, 4)[0] == "NONE"


def test_a_request_without_a_transactional_id_is_refused(raw: Raw) -> None:
    producer_id, epoch = init(raw, "nameless")
    for name in (None, ""):
        code = produce(raw, name, batch(producer_id, epoch))
        assert code == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert producer_id not in describe(raw, "t", 0)[1]


def test_another_ones_producer_id(raw: Raw) -> None:
    init(raw, "one")
    other, _ = init(raw, "another")
    assert produce(raw, "one", batch(other, 0)) == "INVALID_PRODUCER_ID_MAPPING"


def test_records_outside_the_transaction_need_no_look(raw: Raw) -> None:
    producer_id, epoch = init(raw, None)
    assert produce(raw, None, batch(producer_id, epoch, transactional=False)) == "NONE"


def test_a_partition_that_is_not_there_is_not_added(raw: Raw) -> None:
    producer_id, epoch = init(raw, "beyond")
    assert produce(raw, "beyond", batch(producer_id, epoch), number=9) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert describe_transactions(raw, "beyond")[0].transaction_state == "Empty"


def test_a_write_waits_while_the_transaction_before_is_completed() -> None:
    """Markers are held back on the broker; the next transaction's first record waits with them, and is not lost."""
    held: list[tuple[Marker, Written]] = []

    async def hold(broker: RealBroker) -> None:
        broker.parts.transactions.get()._sender._writer = Held(held)
        broker.parts.transactions.get()._verification.pauses = 1_000_000  # on a slow machine too

    async def let_go(broker: RealBroker) -> None:
        transactions = broker.parts.transactions.get()
        transactions._sender._writer = transactions.markers
        for marker, done in held:
            transactions.markers.write(marker, done)

    with Broker() as broker, Raw(broker.bootstrap) as raw, Raw(broker.bootstrap) as other:
        broker.create_topic("t")
        producer_id, epoch = init(raw, "hurried")
        assert produce(raw, "hurried", batch(producer_id, epoch, value=b"first")) == "NONE"
        broker.call(hold)
        assert end(raw, "hurried", producer_id, epoch, True, 5) == ("NONE", producer_id, epoch + 1)
        raw.send(ApiKey.PRODUCE, 12, produce_request("hurried", batch(producer_id, epoch + 1, value=b"second")))
        assert describe_transactions(other, "hurried")[0].transaction_state == "PrepareCommit"
        broker.call(let_go)
        assert raw.answer().responses[0].partition_responses[0].error_code == 0
        assert end(raw, "hurried", producer_id, epoch + 1, True, 5)[0] == "NONE"
        assert read_all(broker.bootstrap, "t") == [b"first", b"second"]


def test_what_is_left_for_another_turn_of_the_loop_is_verified_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction ends between two slices of one request: its other partitions must not open a new one."""
    monkeypatch.setattr(first_write, "Turn", partial(Turn, 0))  # a turn for each partition
    loop = Loop()
    appended: list[Entry] = []
    open_ones = {("t", 0), ("t", 1)}

    def append(
        _timeout: int, _acks: int, _origin: int, entries: list[Entry], done: Callable[[Any], None], waits: Any, _: Any
    ) -> None:
        appended.extend(entries)
        unanswered.append(lambda: done([AppendResult(*entry[:2]) for entry in entries]))
        waits(lambda: given_up.append(entries[0][:2]))

    def verify(_name: str, _id: int, _epoch: int, keys: list[TopicPartition], _version: int, done: Verified) -> None:
        done({key: ErrorCode.NONE if key in open_ones else ErrorCode.INVALID_TXN_STATE for key in keys})

    nobody = SimpleNamespace(log=SimpleNamespace(producers=ProducerState()))
    replicas = SimpleNamespace(
        partitions={("t", 0): nobody, ("t", 1): nobody}, append_lane=Lane(loop.call_soon), append=append
    )
    unanswered: list[Callable[[], None]] = []
    given_up: list[tuple[str, int]] = []
    waits: list[Callable[[], None]] = []
    results: list[list[AppendResult]] = []
    first_write.TransactionalAppend(
        cast(Any, SimpleNamespace(verify_produce=verify)),
        cast(Any, replicas),
        "x",
        10,
        1_000,
        -1,
        [("t", number, batch(7, 0)) for number in range(2)],
        results.append,
        waits.append,
    ).run()
    assert [entry[1] for entry in appended] == [0]
    open_ones.clear()
    assert not waits
    while loop.turn():
        pass
    assert [entry[1] for entry in appended] == [0], "the second was verified again, and refused"
    assert not results
    waits.pop()()
    assert given_up == [("t", 0)]
    unanswered.pop()()
    assert [[each.code.name for each in one] for one in results] == [["NONE", "INVALID_TXN_STATE"]]


@pytest.mark.parametrize("version", [11, 12])
def test_a_transaction_over_very_many_partitions(version: int) -> None:
    """More than one chunk: all are in the transaction, and it ends in each of them."""
    count = 3 * first_write.STEP

    def send(raw: Raw, records: bytes) -> list[str]:
        data = tuple(PartitionProduceData(index=number, records=records) for number in range(count))
        topics = (TopicProduceData(name="wide", partition_data=data),)
        sent = ProduceRequest(transactional_id="x", acks=-1, timeout_ms=5000, topic_data=topics)
        answer = raw.ask(ApiKey.PRODUCE, version, sent)
        return [ErrorCode(part.error_code).name for part in answer.responses[0].partition_responses]

    with Broker() as broker, Raw(broker.bootstrap) as raw:
        broker.create_topic("wide", count)
        producer_id, epoch = init(raw, "x")
        if version == 11:
            announced = range(first_write.STEP, count)
            assert add(raw, "x", producer_id, epoch, *announced, topic="wide") == ["NONE"] * len(announced)
            codes = ["TRANSACTION_ABORTABLE"] * first_write.STEP + ["NONE"] * len(announced)
        else:
            codes = ["NONE"] * count
        assert send(raw, batch(producer_id, epoch)) == codes
        (state,) = describe_transactions(raw, "x")
        written = range(codes.count("TRANSACTION_ABORTABLE"), count)
        assert [(topic.topic, sorted(topic.partitions)) for topic in state.topics] == [("wide", list(written))]
        assert end(raw, "x", producer_id, epoch, True, 4)[0] == "NONE"
        assert send(raw, batch(producer_id + 1, epoch)) == ["INVALID_PRODUCER_ID_MAPPING"] * count


class Held:
    """Takes markers and writes none of them."""

    def __init__(self, held: list[tuple[Marker, Written]]) -> None:
        self._held = held

    def write(self, marker: Marker, done: Written) -> None:
        self._held.append((marker, done))
