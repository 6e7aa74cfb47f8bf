"""Transactional batches in Produce: who must have announced the partition, and who adds it by writing."""

from __future__ import annotations

import pytest

from tests.apis.raw import Raw
from tests.apis.test_k61_describe_producers import describe
from tests.apis.test_k65_describe_transactions import describe as describe_transactions
from tests.apis.txn_kit import add, batch, end, init, produce


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


def test_whoever_names_no_transactional_id_may_not(raw: Raw) -> None:
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
