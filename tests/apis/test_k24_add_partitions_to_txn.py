from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.apis.txn_kit import add, end, init


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_partitions_are_added(raw: Raw, version: int) -> None:
    name = f"add {version}"
    producer_id, epoch = init(raw, name)
    assert add(raw, name, producer_id, epoch, 0, 1, version=version) == ["NONE", "NONE"]
    assert end(raw, name, producer_id, epoch, True, 3)[0] == "NONE"


def test_all_or_nothing(raw: Raw) -> None:
    producer_id, epoch = init(raw, "unknown partition")
    codes = add(raw, "unknown partition", producer_id, epoch, 0, 9)
    assert codes == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert end(raw, "unknown partition", producer_id, epoch, True, 3)[0] == "INVALID_TXN_STATE", "nothing was begun"


@pytest.mark.parametrize(("version", "code"), [(1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")])
def test_strangers(raw: Raw, version: int, code: str) -> None:
    producer_id, epoch = init(raw, "strangers")
    assert add(raw, "strangers", producer_id, epoch + 1, 0, version=version) == [code]
    assert add(raw, "strangers", producer_id + 1, epoch, 0, version=version) == ["INVALID_PRODUCER_ID_MAPPING"]
    assert add(raw, "", producer_id, epoch, 0, version=version) == ["INVALID_REQUEST"]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_verify_many_at_once(raw: Raw, version: int) -> None:
    one, two = init(raw, f"one {version}"), init(raw, f"two {version}")
    add(raw, f"two {version}", *two, 0)

    def transaction(name: str, producer: tuple[int, int], verify: bool, *numbers: int) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify,
            topics=(AddPartitionsToTxnTopic(name="t", partitions=numbers),),
        )

    request = AddPartitionsToTxnRequest(
        transactions=(
            transaction(f"one {version}", one, False, 0, 1),
            transaction(f"two {version}", two, True, 0, 1),
            transaction("nobody", two, True, 2),
        )
    )
    answer = raw.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
    told = {
        result.transactional_id: [
            ErrorCode(each.partition_error_code).name
            for topic in result.topic_results
            for each in topic.results_by_partition
        ]
        for result in answer.results_by_transaction
    }
    assert answer.error_code == 0
    assert told == {
        f"one {version}": ["NONE", "NONE"],
        f"two {version}": ["NONE", "TRANSACTION_ABORTABLE"],
        "nobody": ["INVALID_PRODUCER_ID_MAPPING"],
    }
    empty = raw.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, AddPartitionsToTxnRequest(transactions=()))
    assert empty.results_by_transaction == ()


def test_very_many_partitions_that_do_not_exist(raw: Raw) -> None:
    producer_id, epoch = init(raw, "greedy")
    codes = add(raw, "greedy", producer_id, epoch, *range(100, 100_100))
    assert set(codes) == {"UNKNOWN_TOPIC_OR_PARTITION"}
    assert len(codes) == 100_000
