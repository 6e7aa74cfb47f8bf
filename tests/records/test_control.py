"""Transaction markers, byte for byte as in KIP-98."""

from __future__ import annotations

import pytest

from ixion.language.model.errors import KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.control import ControlType, control_type, coordinator_epoch, transaction_marker
from tests.records.forge import batch, record


@pytest.mark.parametrize(("commit", "kind"), [(True, ControlType.COMMIT), (False, ControlType.ABORT)])
def test_a_marker(commit: bool, kind: ControlType) -> None:
    data = transaction_marker(
        commit=commit,
        producer_id=9,
        producer_epoch=4,
        coordinator_epoch=70_000,
        timestamp=5,
        base_offset=3,
        leader_epoch=2,
    )
    view = BatchView(data)
    assert view.crc_is_valid()
    assert view.is_control
    assert view.is_transactional
    assert (view.producer_id, view.producer_epoch, view.base_sequence, view.last_sequence) == (9, 4, -1, -1)
    assert (view.base_offset, view.leader_epoch, view.count, view.max_timestamp) == (3, 2, 1, 5)
    assert control_type(view) is kind
    assert coordinator_epoch(view) == 70_000
    (only,) = view
    assert only.key == bytes([0, 0, 0, int(commit)])
    assert only.value == bytes.fromhex("0000 00011170")


def test_a_type_of_the_future_is_unknown_not_an_error() -> None:
    assert control_type(BatchView(batch(record(key=b"\0\0\0\x63"), attributes=0x20))) is ControlType.UNKNOWN


def test_a_marker_that_compaction_has_emptied_is_no_error() -> None:
    """Kafka's cleaner keeps the batch, for the producer's epoch, and removes its record."""
    assert control_type(BatchView(batch(b"", count=0, last_offset_delta=0, attributes=0x30))) is ControlType.UNKNOWN


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\x01"])
def test_a_key_that_is_none(key: bytes | None) -> None:
    with pytest.raises(KafkaError, match="control key"):
        control_type(BatchView(batch(record(key=key), attributes=0x20)))


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0"])
def test_a_marker_without_an_epoch(value: bytes | None) -> None:
    with pytest.raises(KafkaError, match="coordinator epoch"):
        coordinator_epoch(BatchView(batch(record(value=value), attributes=0x20)))
