from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from ixion.language.protocol.messages.k65_describe_transactions import DescribeTransactionsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.apis.txn_kit import init


def add_offsets(raw: Raw, name: str, producer_id: int, epoch: int, version: int) -> str:
    request = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id="some group"
    )
    return ErrorCode(raw.ask(ApiKey.ADD_OFFSETS_TO_TXN, version, request).error_code).name


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_the_groups_partition_is_added(raw: Raw, version: int) -> None:
    name = f"offsets {version}"
    producer_id, epoch = init(raw, name)
    assert add_offsets(raw, name, producer_id, epoch, version) == "NONE"
    request = DescribeTransactionsRequest(transactional_ids=(name,))
    (state,) = raw.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("__consumer_offsets", (0,))]


@pytest.mark.parametrize(("version", "code"), [(1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")])
def test_strangers(raw: Raw, version: int, code: str) -> None:
    producer_id, epoch = init(raw, "offsets of strangers")
    assert add_offsets(raw, "offsets of strangers", producer_id, epoch + 1, version) == code
    assert add_offsets(raw, "nobody", producer_id, epoch, version) == "INVALID_PRODUCER_ID_MAPPING"
