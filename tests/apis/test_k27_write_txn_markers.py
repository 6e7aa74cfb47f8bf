from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.apis.test_k61_describe_producers import open_since
from tests.apis.txn_kit import add, batch, init, produce


def marker(
    producer_id: int, epoch: int, *numbers: int, coordinator_epoch: int = 0, version: int = 0
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        topics=(WritableTxnMarkerTopic(name="t", partition_indexes=numbers),),
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    )


def write(raw: Raw, version: int, *markers: WritableTxnMarker) -> list[tuple[int, int, str]]:
    answer = raw.ask(ApiKey.WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest(markers=markers))
    return [
        (result.producer_id, each.partition_index, ErrorCode(each.error_code).name)
        for result in answer.markers
        for topic in result.topics
        for each in topic.partitions
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_ends_the_transaction_in_its_partition(raw: Raw, version: int) -> None:
    name = f"marked {version}"
    producer_id, epoch = init(raw, name)
    add(raw, name, producer_id, epoch, 0)
    assert produce(raw, name, batch(producer_id, epoch), version=10) == "NONE"
    assert open_since(raw, 0, producer_id) >= 0
    codes = write(raw, version, marker(producer_id, epoch, 0, 99))
    assert codes == [(producer_id, 0, "NONE"), (producer_id, 99, "UNKNOWN_TOPIC_OR_PARTITION")]
    assert open_since(raw, 0, producer_id) == -1


def test_an_old_coordinator_and_an_old_epoch_are_refused(raw: Raw) -> None:
    producer_id, _ = init(raw, "old")
    assert write(raw, 1, marker(producer_id, 3, 0, coordinator_epoch=5)) == [(producer_id, 0, "NONE")]
    assert write(raw, 1, marker(producer_id, 3, 0, coordinator_epoch=4), marker(producer_id, 2, 0)) == [
        (producer_id, 0, "TRANSACTION_COORDINATOR_FENCED"),
        (producer_id, 0, "INVALID_PRODUCER_EPOCH"),
    ]


def test_a_marker_with_the_epoch_of_the_open_transaction_comes_late_if_each_has_its_own(raw: Raw) -> None:
    producer_id, epoch = init(raw, "raised")
    add(raw, "raised", producer_id, epoch, 0)
    assert produce(raw, "raised", batch(producer_id, epoch), version=10) == "NONE"
    since = open_since(raw, 0, producer_id)
    assert write(raw, 2, marker(producer_id, epoch, 0, version=2)) == [(producer_id, 0, "INVALID_PRODUCER_EPOCH")]
    assert open_since(raw, 0, producer_id) == since >= 0
    assert write(raw, 2, marker(producer_id, epoch + 1, 0, version=2)) == [(producer_id, 0, "NONE")]
    assert open_since(raw, 0, producer_id) == -1
    # Its answer may have been lost: the same again is fine, an older one is not.
    assert write(raw, 2, marker(producer_id, epoch + 1, 0, version=2)) == [(producer_id, 0, "NONE")]
    assert write(raw, 2, marker(producer_id, epoch, 0, version=2)) == [(producer_id, 0, "INVALID_PRODUCER_EPOCH")]


def test_none_at_all(raw: Raw) -> None:
    assert write(raw, 1) == []
