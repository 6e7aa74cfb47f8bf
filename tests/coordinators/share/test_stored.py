"""The records of `__share_group_state`. That their tables are those of Apache Kafka is tested in tests/protocol."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.coordinators.share.runs import Runs
from ixion.broker.coordinators.share.stored import (
    AT_ONCE,
    LARGE_BYTES,
    States,
    Stored,
    replay,
    snapshot_record,
    update_record,
)
from ixion.broker.replica.share_persister import StateBatch
from ixion.language.protocol.storage import decode, encode
from ixion.language.protocol.stored.share_state import ShareSnapshotValue, ShareUpdateValue
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.record import Record
from tests.coordinators.share.test_runs import batches
from tests.coordinators.share.world import START_MS, key_of, update


@settings(max_examples=100, deadline=None)
@given(st.lists(batches, max_size=20), st.sampled_from([-1, 0, 300]), st.integers(0, 2))
def test_a_snapshot_is_what_the_codec_makes_of_it(changes: list[StateBatch], complete: int, start: int) -> None:
    state = Stored(snapshot_epoch=3, state_epoch=4, leader_epoch=5, start_offset=start)
    state.complete_count, state.created_ms, state.written_ms = complete, START_MS, START_MS + 1
    for change in changes:
        state.runs.apply(change, start)
    value = snapshot_record(key_of(), state)[1]
    assert value is not None
    read = decode(ShareSnapshotValue, value)
    assert encode(read, 0) == value
    found = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count, each.due_ms)
        for each in read.state_batches
    ]
    assert found == list(state.runs)


@settings(max_examples=100, deadline=None)
@given(st.lists(batches, max_size=20), st.sampled_from([-1, 0, 300]))
def test_an_update_is_what_the_codec_makes_of_it(changes: list[StateBatch], complete: int) -> None:
    value = update_record(key_of(), 3, update(*changes, complete=complete))[1]
    assert value is not None
    read = decode(ShareUpdateValue, value)
    assert encode(read, 0) == value
    found = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count, each.due_ms)
        for each in read.state_batches
    ]
    assert found == changes


def test_a_large_state_has_a_longer_count() -> None:
    state = Stored(snapshot_epoch=0, state_epoch=0, leader_epoch=0, start_offset=0)
    state.runs = Runs(StateBatch(offset, offset, 0, 1, START_MS) for offset in range(0, 40_000, 2))
    value = snapshot_record(key_of(), state)[1]
    assert value is not None
    assert len(decode(ShareSnapshotValue, value).state_batches) == 20_000


NOTHING: States = {}


def large(count: int) -> Stored:
    """With all kinds of runs, of which no two are alike."""
    state = Stored(snapshot_epoch=3, state_epoch=4, leader_epoch=5, start_offset=3)
    state.complete_count, state.created_ms, state.written_ms = 6, START_MS, START_MS + 1
    state.runs = Runs(
        StateBatch(
            3 + number, 3 + number, 0 if number % 3 else 2, 1 + number % 3, START_MS + number if number % 3 else 0
        )
        for number in range(count)
    )
    return state


def record_of(key: bytes, value: bytes) -> Record:
    builder = BatchBuilder()
    builder.append(key, value, timestamp=START_MS)
    record: Record = next(BatchView(bytes(builder.build()), 0).records())
    return record


def test_a_large_state_is_restored_in_steps() -> None:
    count = 10 * AT_ONCE + 1
    state, states = large(count), NOTHING.copy()
    key, value = snapshot_record(key_of(), state)
    assert value is not None
    assert len(value) > LARGE_BYTES
    steps = replay(record_of(key, value), states)
    assert steps is not None
    assert states == {}
    assert sum(1 for _ in steps) == 10
    found = states[key_of()]
    assert found.seen() == state.seen()
    assert len(found.runs) == count
    assert snapshot_record(key_of(), found) == (key, value)
    assert found.snapshot_offset == 0


def test_a_large_state_with_fields_of_others_is_restored() -> None:
    state, states = large(2_000), NOTHING.copy()
    key, value = snapshot_record(key_of(), state)
    assert value is not None
    read = decode(ShareSnapshotValue, value)
    at = value.index(struct.pack(">qqbhB", 3, 3, 2, 1, 0)) + 19
    strange = value[:at] + b"\x01\x63\x01\x00" + value[at + 1 :]  # the tagged field 99
    assert decode(ShareSnapshotValue, strange).start_offset == read.start_offset
    steps = replay(record_of(key, strange), states)
    assert steps is not None
    list(steps)
    assert states[key_of()].seen() == state.seen()


def test_a_large_state_that_is_cut_off_changes_nothing() -> None:
    known = Stored(snapshot_epoch=0, state_epoch=0, leader_epoch=0, start_offset=0)
    states: States = {key_of(): known}
    key, value = snapshot_record(key_of(), large(2_000))
    assert value is not None
    for end in (LARGE_BYTES + 1, len(value) - 1):
        steps = replay(record_of(key, value[:end]), states)
        assert steps is not None
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is, the loader skips the record
            list(steps)
    assert states == {key_of(): known}
