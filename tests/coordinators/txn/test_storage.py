"""Records of `__transaction_state`: there and back, both versions, tombstones, what is passed over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ixion.broker.coordinators.txn.snapshot import Snapshot, created
from ixion.broker.coordinators.txn.states import State
from ixion.broker.coordinators.txn.storage import (
    FLEXIBLE,
    PLAIN,
    decode_snapshot,
    encode_snapshot,
    replay,
    snapshot_batch,
    tombstone_batch,
)
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder

FULL = Snapshot(
    state=State.PREPARE_COMMIT,
    producer_id=2**40,
    epoch=17,
    last_epoch=-1,
    previous_producer_id=2**40,
    next_producer_id=12,
    timeout_ms=60_000,
    partitions=frozenset({("a", 0), ("a", 7), ("b", 2)}),
    started_ms=1_700_000_000_000,
    updated_ms=1_700_000_000_500,
    client_version=2,
)


def test_version_1_holds_everything_but_the_last_epoch() -> None:
    assert decode_snapshot(encode_snapshot(FULL, FLEXIBLE)) == FULL
    assert decode_snapshot(encode_snapshot(replace(FULL, last_epoch=16), FLEXIBLE)) == FULL


def test_version_0_holds_what_it_can() -> None:
    expected = replace(FULL, previous_producer_id=-1, next_producer_id=-1, client_version=0)
    assert decode_snapshot(encode_snapshot(FULL, PLAIN)) == expected


@pytest.mark.parametrize("version", [PLAIN, FLEXIBLE])
def test_an_empty_id_has_no_list_of_partitions(version: int) -> None:
    fresh = replace(created(5, 1_000, 99), epoch=0)
    data = encode_snapshot(fresh, version)
    assert decode_snapshot(data) == fresh
    # version, producer id, epoch, timeout, status, then the list: null
    assert data[17:].startswith(b"\xff\xff\xff\xff" if version == PLAIN else b"\0")


def take(batch: BatchView, found: dict[str, Snapshot]) -> None:
    for record in batch.records():
        replay(record, found)


def test_the_later_record_wins_and_a_tombstone_ends_it() -> None:
    found: dict[str, Snapshot] = {}
    take(BatchView(snapshot_batch("x", FULL, FLEXIBLE, 1)), found)
    take(BatchView(snapshot_batch("y", FULL, FLEXIBLE, 1)), found)
    take(BatchView(snapshot_batch("x", replace(FULL, epoch=18), FLEXIBLE, 2)), found)
    assert found["x"].epoch == 18
    take(BatchView(tombstone_batch(["x", "never seen"], 3)), found)
    assert list(found) == ["y"]


def test_what_is_not_ours_is_refused_and_changes_nothing() -> None:
    builder = BatchBuilder()
    builder.append(b"\x00\x05whatever", b"from the future")
    builder.append(None, b"no key")
    builder.append(b"\x00\x00\x00\x01x", b"\x00\x63of a later version")
    builder.append(b"\x00\x00\x00\x01x", b"\x00")
    builder.append(b"\x00\x00\x00\x01x", encode_snapshot(replace(FULL, state=State.DEAD), PLAIN))
    found = {"x": FULL}
    records = list(BatchView(builder.build()).records())
    assert len(records) == 5
    for record in records:
        with pytest.raises((DecodeError, UnsupportedVersionError, ValueError)):
            replay(record, found)
    assert found == {"x": FULL}
